"""Draw docs/scoreboard/ from the records in results/: `python -m tools.scoreboard`, or `nox -s scoreboard`.

The folder is written whole: a page that no record gives any more is deleted.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from harness.bench import record
from harness.rendering.scoreboard import machines
from harness.rendering.scoreboard_pages import pages
from harness.report.report import Report

ROOT = Path(__file__).parents[1]
FOLDER = Path("docs/scoreboard")
#: The records whose whole report is a page of the site, and its address from the scoreboard.
WHOLE = {
    "results/cpu/operators.json": "../reports/cpu.html",
    "results/nvidia-h200/operators.json": "../reports/h200.html",
}


def records(root: Path = ROOT) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Each record of the tree, a report or of another kind, as it stands in its file."""
    for path in sorted((root / "results").glob("*/*.json")):
        yield path, json.loads(path.read_text(encoding="utf-8"))


def drawn(root: Path = ROOT) -> dict[str, str]:
    """The text of each page by its path in the folder, from all records of the tree. Raises UsageError for a record
    that is not valid."""
    reports: list[tuple[str, Report]] = []
    benches: list[tuple[str, dict[str, Any]]] = []
    for path, found in records(root):
        name = path.relative_to(root).as_posix()
        if "cells" in found:
            reports.append((name, Report.read(path)))
        elif found.get("kind") == record.KIND:
            benches.append((name, record.read(path)))
    return pages(machines(reports, benches), WHOLE)


def main() -> None:
    """Draw."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    folder, found = ROOT / FOLDER, drawn()
    for old in folder.rglob("*.html"):
        if old.relative_to(folder).as_posix() not in found:
            old.unlink()
    for name, text in found.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    print(f"written: {len(found)} pages, {sum(map(len, found.values())):,} characters, in {FOLDER}")


if __name__ == "__main__":
    main()
