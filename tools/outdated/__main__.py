"""Draw the list of answers of older code in docs/results.md: `python -m tools.outdated`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path

from harness.errors import UsageError
from harness.rendering.tables import insert
from tools.outdated.answers import Older, answers, older
from tools.outdated.code import changed
from tools.scoreboard import ROOT

DOCUMENT, MARK = Path("docs/results.md"), "python -m tools.outdated"


def table(counted: Mapping[Older, int]) -> str:
    """A line for each implementation and record: how many answers, and which files differ."""
    if not counted:
        return "No answer is of older code."
    rows = [
        f"| {each.backend} | {each.operator} | {each.what}: {number} | `{each.record}` ({each.commit}) | "
        f"{', '.join(f'`{Path(name).name}`' for name in each.files)} |"
        for each, number in sorted(counted.items())
    ]
    head = ["| backend | operator | answers | the last record | what differs |", "|---|---|---|---|---|"]
    return "\n".join([f"{sum(counted.values())} answers:", "", *head, *rows])


def drawn(document: str) -> str:
    """The page with today's list. Raises UsageError if git lacks the commit of a record."""
    return insert(table(older(answers(), changed)) + "\n", document, MARK)


def main() -> int:
    """Draw."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    try:
        text = drawn((ROOT / DOCUMENT).read_text(encoding="utf-8"))
    except UsageError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    (ROOT / DOCUMENT).write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
