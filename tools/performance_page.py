"""Draw docs/performance.md from bench records: `python -m tools.performance_page results/cpu/bench.json ...`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from harness.bench.claims import CLAIMS, MET, NOT_MEASURED
from harness.bench.record import read
from harness.bench.tables import everything, markdown, tutorial
from harness.rendering.tables import insert, plain

DOCUMENT = Path("docs/performance.md")


def section(record: dict[str, Any]) -> str:
    """The page's section of one record: its machine, the claims that it decides, the tutorial's table, all rows."""
    machine, settings = record["environment"], record["settings"]
    lines = [
        f"## {plain(machine['gpu'] or machine['cpu'])}",
        "",
        f"torch {machine['torch']}, Python {machine['python']}, {settings['rounds']} rounds; intervals of 95%.",
        "",
    ]
    judged = [(claim, *claim.judged(record["rows"])) for claim in CLAIMS]
    claims = [[claim.text(), figure, verdict] for claim, verdict, figure in judged if verdict != NOT_MEASURED]
    if claims:
        met = sum(verdict == MET for *_, verdict in claims)
        claims.sort(key=lambda claim: claim[2] == MET)  # unmet claims first
        lines += [f"{met} of {len(claims)} claims are met.", ""]
        lines += [markdown((["claim", "times as fast, or of its memory", ""], claims))]
    for title, cells in tutorial(record["rows"]).items():
        lines += [f"**The tutorial's table: {title}**", "", markdown(cells)]
    for title, cells in everything(record["rows"]).items():
        lines += [f"<details><summary>{title}</summary>", "", markdown(cells), "</details>", ""]
    if record["missing"]:
        lines += ["Not timed:", ""]
        keys = ("operator", "backend", "device", "dtype", "case", "phase", "clock")
        for entry in record["missing"]:
            where = " ".join(str(entry[key]) for key in keys if entry[key])
            lines.append(f"- {plain(where)}: {plain(entry['reason'].splitlines()[0])}")
    return "\n".join(lines).rstrip() + "\n"


def drawn(record: dict[str, Any], document: str, name: str) -> str:
    """The page with that record's section; a new section is added at the end."""
    if f"<!-- {name} -->" not in document:
        document = f"{document.rstrip()}\n\n<!-- {name} -->\n\n<!-- end -->\n"
    return insert(section(record), document, name)


def main() -> None:
    """Redraw the page's section of each record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("records", type=Path, nargs="+")
    document = DOCUMENT.read_text(encoding="utf-8")
    for path in parser.parse_args().records:
        document = drawn(read(path), document, str(path))
    DOCUMENT.write_text(document, encoding="utf-8")


if __name__ == "__main__":
    main()
