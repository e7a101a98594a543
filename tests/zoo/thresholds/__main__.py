"""`python -m tests.zoo.thresholds`: draw faults, and print which property finds each of them."""

from __future__ import annotations

import argparse
from collections import Counter

from tests.zoo.thresholds.draw import KINDS, draw
from tests.zoo.thresholds.drawn import Drawn
from tests.zoo.thresholds.every.draw import draw_of_every_operator
from tests.zoo.thresholds.judge import judged

_LINE = "{:>3}  {:15}  {:16}  {:8}  {:22}  {:>6}  {}"


def main() -> None:
    """Judge the faults that the options select."""
    parser = argparse.ArgumentParser(prog="python -m tests.zoo.thresholds", description=__doc__)
    parser.add_argument("--seed", type=int, default=0, help="seed of the draw (default: 0)")
    parser.add_argument("--count", type=int, help="judge the first COUNT of the selected faults only")
    parser.add_argument(
        "--class", dest="kinds", action="append", choices=KINDS, help="faults of this class only; repeatable"
    )
    parser.add_argument(
        "--every", action="store_true", help="some faults of every operator, in place of many of the four with bases"
    )
    parser.add_argument("--operator", help="faults of this operator only")
    parser.add_argument("--shard", type=int, nargs=2, default=(0, 1), metavar=("K", "N"), help="part K of N parts")
    parser.add_argument("--reasons", action="store_true", help="print the reason below each fault")
    parser.add_argument("--show", action="store_true", help="print the files and judge nothing")
    options = parser.parse_args()
    chosen = [
        (number, drawn)
        for number, drawn in enumerate((draw_of_every_operator if options.every else draw)(options.seed))
        if number % options.shard[1] == options.shard[0]
        and drawn.kind in (options.kinds or KINDS)
        and options.operator in (None, drawn.operator)
    ][: options.count]
    if options.show:
        for number, drawn in chosen:
            print(f"# {number}: {drawn.words}", drawn.source, sep="\n")
    else:
        _judge(chosen, options.reasons)


def _judge(chosen: list[tuple[int, Drawn]], reasons: bool) -> None:
    """Print a line for each fault as soon as it is judged, then the rates."""
    print(_LINE.format("", "class", "operator", "dtype", "found by", "s", "fault"))
    asked, caught = Counter[str](), Counter[str]()
    for number, drawn in chosen:
        outcome = judged(drawn)
        asked[drawn.kind] += 1
        caught[drawn.kind] += outcome.caught
        dtype = str(drawn.dtype).removeprefix("torch.")
        found = outcome.property or outcome.verdict or "-"
        shown = number, drawn.kind, drawn.operator, dtype, found, f"{outcome.seconds:.1f}", drawn.words
        print(_LINE.format(*shown), flush=True)
        if reasons and outcome.reason:
            print(f"     {outcome.verdict}: {outcome.reason}", flush=True)
    print()
    for kind in asked:
        print(f"{kind:15}  {caught[kind]} of {asked[kind]} found")
    print(f"{'all':15}  {caught.total()} of {asked.total()} found")


if __name__ == "__main__":
    main()
