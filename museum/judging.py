"""Judge one release: the command line's `judge` with the release's folder on the path, and its report."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from harness.errors import NoEvidence, UsageError
from harness.executing.module_path import with_this_tree
from harness.report.report import Report
from museum.entries import HERE, Entry

ROOT = HERE.parent


def command(entry: Entry, report: Path, here: Path = HERE) -> list[str]:
    """The command line that judges the release on the path by the entry's properties."""
    adapter = here / "adapters" / entry.candidate
    named = f"{entry.operator}={adapter}" if entry.operator else str(adapter)
    by = ["--reference", str(here / "references" / entry.reference)] if entry.reference else []
    by += ["--example", str(here / "references" / entry.example)] if entry.example else []
    asked = [part for name in entry.judged_by for part in ("--property", name)]
    place = ["--device", entry.device, "--dtype", entry.dtype, "-n", "0", "--report", str(report)]
    return [sys.executable, "-m", "harness", "judge", "--candidate", named, *by, *place, *asked]


def judged(entry: Entry, folders: Sequence[Path], report: Path, here: Path = HERE) -> Report:
    """What the suite says about the release in these folders. The report stays at its path.

    Raises NoEvidence, with the last line of the run, if it wrote no report that can be read.
    """
    report.parent.mkdir(parents=True, exist_ok=True)
    report.unlink(missing_ok=True)
    # The folders come before site-packages: the release is found even where another one is installed.
    path = os.pathsep.join([*map(str, folders), with_this_tree(os.environ)])
    done = subprocess.run(
        command(entry, report.resolve(), here),
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": path},
    )
    try:
        return Report.read(report)
    except UsageError as error:
        said = [line for line in (done.stderr + done.stdout).splitlines() if line.strip()] or [str(error)]
        raise NoEvidence(f"`judge` wrote no report (exit code {done.returncode}): {said[-1].strip()}") from error
