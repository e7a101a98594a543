"""Draw docs/verdict.svg, the README's picture: the terminal output of a real run on a wrong function.

`python -m tools.verdict_picture` judges docs/examples/wrong_function.py and draws what `python -m harness show` prints.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from io import StringIO
from pathlib import Path
from typing import Any

from rich.console import Console

from harness.rendering import tables
from harness.report.report import Report

PICTURE = Path("docs/verdict.svg")
CANDIDATE = "lltm=docs/examples/wrong_function.py:lltm"
#: Few enough properties for a picture.
PROPERTIES = "forward_parity or vjp_parity or layouts or determinism or no_side_effects or invariants"
COMMAND = f"python -m harness judge --candidate {CANDIDATE} --dtype float32 -k '...'"
_WIDTH = 110


class _Wrapping(Console):
    """A terminal that wraps long lines, which a picture would cut."""

    def print(self, *objects: Any, **options: Any) -> None:
        super().print(*objects, **{**options, "soft_wrap": False})


def judged(report: Path) -> Report:
    """The report of a run in a separate process; the function is meant to fail."""
    options = ["--candidate", CANDIDATE, "--dtype", "float32", "--device", "cpu", "--examples-seed", "0"]
    command = [sys.executable, "-m", "harness", "judge", *options, "-k", PROPERTIES, "--report", str(report)]
    subprocess.run(command, check=False, stdout=subprocess.DEVNULL)
    return Report.read(report)


def picture(report: Report) -> str:
    """The SVG."""
    console = _Wrapping(record=True, width=_WIDTH, file=StringIO(), force_terminal=True)
    console.print(f"$ {COMMAND}", style="bold", highlight=False)
    tables.print_report(report, console)
    return console.export_svg(title="A verdict", unique_id="verdict")


def main() -> None:
    """Judge and draw."""
    with tempfile.TemporaryDirectory() as folder:
        PICTURE.write_text(picture(judged(Path(folder) / "report.json")), encoding="utf-8")
    print(f"written: {PICTURE}")


if __name__ == "__main__":
    main()
