"""Draw docs/verdict.svg, the README's picture: what the terminal shows of a recorded run on a wrong function.

`python -m tools.verdict_picture` draws what `python -m harness show results/cpu/wrong-function.json` prints. The record
is of this run:

    python -m harness judge --candidate lltm=docs/examples/wrong_function.py:lltm --dtype float32 --dtype bfloat16 \\
        --device cpu --report results/cpu/wrong-function.json
"""

from __future__ import annotations

from io import StringIO
from pathlib import Path

from rich.console import Console

from harness.rendering import tables
from harness.report.report import Report

PICTURE = Path("docs/verdict.svg")
RECORD = Path("results/cpu/wrong-function.json")
_WIDTH = 110


def picture(report: Report) -> str:
    """The SVG."""
    console = Console(record=True, width=_WIDTH, file=StringIO(), force_terminal=True)
    console.print(f"$ python -m harness show {RECORD}", style="bold", highlight=False)
    tables.print_report(report, console)
    return console.export_svg(title="A verdict", unique_id="verdict")


def main() -> None:
    """Draw."""
    PICTURE.write_text(picture(Report.read(RECORD)), encoding="utf-8")
    print(f"written: {PICTURE}")


if __name__ == "__main__":
    main()
