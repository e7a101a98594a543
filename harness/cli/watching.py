"""Judge again whenever a file is saved: `python -m harness judge --watch FILE ...`.

The watching process has imported torch and the suite, and does nothing else: it forks for each run, which therefore
starts at once. The processes of the candidate are forked anew each time, as `harness.running.launching` does.
"""

from __future__ import annotations

import argparse
import importlib
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from harness.errors import UsageError
from harness.running import forking, launching

#: Seconds between two looks at the files.
_LOOK = 0.2


def read(arguments: Sequence[str]) -> tuple[list[Path], list[str]]:
    """The files of `--watch`, and the other arguments. Raises UsageError for a file that is not there."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    parser.add_argument("--watch", type=Path, action="append", default=[])
    try:
        given, others = parser.parse_known_args(arguments)
    except argparse.ArgumentError:
        raise UsageError("--watch was given without a file, but should name the one whose changes matter") from None
    for file in given.watch:
        if not file.is_file():
            raise UsageError(f"--watch was {str(file)!r}, but should be a file")
    return given.watch, others


def again(files: Sequence[Path], run: Callable[[], int]) -> int:
    """Run now, and after each change of a file, until Ctrl-C. Returns the exit code of the last run."""
    folder = Path(tempfile.mkdtemp(prefix="lltm-conformance-"))
    forking.ask_nvml()
    launching.keep_runner(folder)  # imports torch meanwhile
    importlib.import_module("harness.pytest_plugin.plugin")
    from harness.running import suite_process  # imports torch, as the plugin does

    suite_process.keep()
    code, names = 0, ", ".join(map(str, files))
    try:
        while True:
            seen = _stamps(files)
            code = _forked(run)
            print(f"\nwaiting for a change of {names}; Ctrl-C ends", file=sys.stderr, flush=True)
            while _stamps(files) == seen or None in _stamps(files):  # some editors remove a file and write it anew
                time.sleep(_LOOK)
    except KeyboardInterrupt:
        return code
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _stamps(files: Sequence[Path]) -> list[tuple[int, int] | None]:
    """The time and the size of each file; None for one that is not there."""
    found: list[tuple[int, int] | None] = []
    for file in files:
        try:
            facts = file.stat()
            found.append((facts.st_mtime_ns, facts.st_size))
        except OSError:
            found.append(None)
    return found


def _forked(run: Callable[[], int]) -> int:
    """The exit code of `run` in a child. Ctrl-C ends the child as it ends any run; then it is raised here."""
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child == 0:
        forking.leave_after(run)
    try:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    except KeyboardInterrupt:
        os.kill(child, signal.SIGINT)  # a terminal has told it already; a second signal changes nothing
        os.waitpid(child, 0)
        raise
