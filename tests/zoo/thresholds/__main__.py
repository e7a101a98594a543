"""`python -m tests.zoo.thresholds`: draw faults, and print which property finds each of them."""

from __future__ import annotations

import argparse

from rich.console import Console
from rich.table import Table

from tests.zoo.thresholds.draw import KINDS, draw
from tests.zoo.thresholds.drawn import Drawn
from tests.zoo.thresholds.facts import FACTS
from tests.zoo.thresholds.judge import Outcome, judged


def _row(number: int, drawn: Drawn, outcome: Outcome) -> tuple[str, ...]:
    dtype = str(drawn.dtype).removeprefix("torch.")
    found = outcome.property or "not found"
    return str(number), drawn.kind, drawn.operator, dtype, drawn.words, found, f"{outcome.seconds:.1f}"


def main() -> None:
    """Judge the faults that the options select."""
    parser = argparse.ArgumentParser(prog="python -m tests.zoo.thresholds", description=__doc__)
    parser.add_argument("--seed", type=int, default=0, help="seed of the draw (default: 0)")
    parser.add_argument("--count", type=int, help="judge the first COUNT of the selected faults only")
    parser.add_argument("--class", dest="kind", choices=KINDS, help="faults of this class only")
    parser.add_argument("--operator", choices=tuple(FACTS), help="faults of this operator only")
    parser.add_argument("--show", action="store_true", help="print the files and judge nothing")
    options = parser.parse_args()
    chosen = [
        (number, drawn)
        for number, drawn in enumerate(draw(options.seed))
        if options.kind in (None, drawn.kind) and options.operator in (None, drawn.operator)
    ][: options.count]
    if options.show:
        for number, drawn in chosen:
            print(f"# {number}: {drawn.words}", drawn.source, sep="\n")
        return
    console = Console(width=200)
    table = Table("", "class", "operator", "dtype", "fault", "found by", "s", title=f"seed {options.seed}")
    caught = 0
    for number, drawn in chosen:
        outcome = judged(drawn)
        caught += outcome.caught
        table.add_row(*_row(number, drawn, outcome))
    console.print(table)
    console.print(f"found: {caught} of {len(chosen)}")


if __name__ == "__main__":
    main()
