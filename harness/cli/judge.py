"""Run the suite from anywhere: `python -m harness judge` is pytest with this plugin."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from backends.devices import CPU
from harness.building.cache import cache_root
from harness.candidate import candidate
from harness.cli import watching
from harness.errors import HarnessError
from harness.running import launching

_SUITE = Path(__file__).parents[1] / "pytest_plugin" / "suite"
#: Prefixes of options with which one process is used: too little work for several, or a debugger.
_ONE_PROCESS = (
    "-k",
    "-n",
    "-p",
    "-s",
    "--numprocesses",
    "--pdb",
    "--capture",
    "--dtype",
    "--isolate",
    "--resume",
    "--property",
    "--quick",
)
#: Up to so many cores, one candidate is judged by one process.
_FEW_CORES = 4


def main(arguments: Sequence[str]) -> int:
    """Judge once; with `--watch FILE`, again after each change of the file. Raises UsageError if there is none."""
    files, others = watching.read(arguments)
    return watching.again(files, lambda: judge(others)) if files else judge(others)


def judge(arguments: Sequence[str]) -> int:
    """pytest on the suite's tests, with pytest's own exit code. `arguments` are options of pytest and of the plugin.

    A whole run is spread over the cores; `-n 0`, or an option that narrows the selection, keeps it in one process. So
    does a single candidate on few cores: it has two processes beside the judge's anyway, and each worker costs the
    seconds in which three more import torch.
    """
    candidates = _start_early(arguments)
    plugin = ["-p", "harness.pytest_plugin.plugin", "-c", str(_SUITE / "pytest.ini")]
    # No assertion here is a test's: to rewrite them takes longer than some properties.
    own = [*plugin, "--import-mode=importlib", "--assert=plain", "-q", "--no-header"]
    # The folder of the installed suite must not be written to, and must not supply pytest's configuration. Nothing but
    # the report is written to the user's folder.
    where = ["--rootdir", str(Path.cwd()), "-p", "no:cacheprovider", "-p", "no:benchmark"]
    alone = candidates == 1 and len(os.sched_getaffinity(0)) <= _FEW_CORES
    if not alone and not any(option.startswith(_ONE_PROCESS) for option in arguments):
        own += ["-n", "auto", "--dist", "loadgroup"]
    os.environ.setdefault("HYPOTHESIS_STORAGE_DIRECTORY", str(cache_root() / "hypothesis"))
    code = int(pytest.main([*own, *where, str(_SUITE / "test_properties.py"), *arguments]))
    try:
        sys.stdout.flush()
    except BrokenPipeError:  # as `head` leaves it: Python would fail once more at its exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return code


def _start_early(arguments: Sequence[str]) -> int:
    """Start the process of the first candidate; returns how many there are. What is wrong is told later, by pytest."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    parser.add_argument("--candidate", action="append", default=[])
    for name in ("--device", "--reference", "--isolate", "--sandbox"):
        parser.add_argument(name, default="")
    try:
        given, _ = parser.parse_known_args(arguments)
        if given.candidate and given.isolate != "off" and "-h" not in arguments and "--help" not in arguments:
            text = given.candidate[0]
            named = text if "=" in text else f"{given.reference.rpartition(':')[2]}={text}"
            launching.begin(launching.of_candidate(candidate(named).text, given.sandbox or "auto", given.device or CPU))
    except (argparse.ArgumentError, HarnessError):
        return 0
    return len(given.candidate)
