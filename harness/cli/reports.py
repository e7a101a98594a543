"""Reading the reports that a command was given, and writing what is drawn from them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from harness.errors import UsageError
from harness.report.atomic_write import write_atomically
from harness.report.merge import merge
from harness.report.report import Report


def read(paths: Sequence[Path], any_cpu: bool = False) -> Report:
    """The one report of all files. Raises UsageError if a file is no report, or if the reports cannot be merged."""
    names = [str(path) for path in paths]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise UsageError(f"{twice} is given twice; give each report once")
    return merge([(str(path), Report.read(path)) for path in paths], any_cpu)


def deliver(text: str, output: Path | None) -> int:
    """Write to the file, or to standard output. Returns exit code 0, whatever the verdicts are."""
    if output is None:
        sys.stdout.write(text)
    else:
        write(output, lambda path: write_atomically(path, text))
        print(f"{output}: {len(text.encode()):,} bytes", file=sys.stderr)
    return 0


def write(output: Path, by: Callable[[Path], None]) -> None:
    """Write the file. Raises UsageError, which names it: an error of the system may name another file or none."""
    try:
        by(output)
    except OSError as error:
        raise UsageError(f"{output} cannot be written: {error.strerror or error}") from None
