"""`python -m harness fleet`: judge many candidates, and write a row for each."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from rich.console import Console

from harness.cli import parsing
from harness.cli.main import COMMANDS
from harness.errors import UsageError
from harness.fleet import api, input, parquet
from harness.fleet.display import Display
from harness.fleet.item import Item
from harness.fleet.outcome import OTHER_VERDICTS, CandidateResult
from harness.report.levels import LEVELS
from harness.running import option_values

_INTERRUPTED = 130


def _parser() -> argparse.ArgumentParser:
    command = parsing.parser("fleet", COMMANDS["fleet"])
    command.usage = "python -m harness fleet INPUT [options] [-- options of judge]"
    command.add_argument(
        "input", type=Path, metavar="INPUT", help="a folder of Python files, a .jsonl or a .parquet file"
    )
    command.add_argument(
        "-o",
        "--results",
        type=Path,
        default=Path("reports/fleet.sqlite"),
        metavar="FILE",
        help="SQLite; default: %(default)s",
    )
    command.add_argument("--parquet", type=Path, metavar="FILE", help="write the results as Parquet too; needs pyarrow")
    for name, meaning in (
        ("operator", "the contract, where a candidate names none"),
        ("reference", "or a slow function that you trust: FILE.py:FUNCTION"),
        ("example", "a function that returns the arguments of one call of the reference: FILE.py:FUNCTION"),
        ("function", "the function's name, where a candidate names none"),
    ):
        command.add_argument(f"--{name}", default="", metavar=name.upper(), help=meaning)
    command.add_argument("--device", choices=("cpu", "cuda"), help="default: cuda where there is a GPU")
    command.add_argument("--dtype", action="append", default=[], metavar="DTYPE", help="default: all (repeatable)")
    command.add_argument("--property", action="append", default=[], metavar="NAME", help="default: all (repeatable)")
    command.add_argument(
        "--level", choices=LEVELS, help="the last level that a candidate needs to be right; default: safe"
    )
    command.add_argument(
        "--workers",
        type=option_values.whole(1),
        default=0,
        metavar="N",
        help="default: one a core, or --per-gpu for each GPU",
    )
    command.add_argument(
        "--per-gpu", type=option_values.whole(1), default=1, metavar="N", help="workers that share a GPU; default: 1"
    )
    command.add_argument(
        "--limit",
        type=option_values.seconds,
        default=api.LIMIT,
        metavar="S",
        help="seconds for one candidate; default: 1800",
    )
    command.add_argument(
        "--cold", action="store_true", help="a new `judge` for each candidate, not a fork of a warm process"
    )
    command.add_argument(
        "--ray",
        nargs="?",
        const="auto",
        metavar="ADDRESS",
        help="on a Ray cluster; default: the one of this machine; needs ray",
    )
    command.add_argument("--strict", action="store_true", help="exit code 1 if a candidate is not right, too")
    return command


def main(arguments: Sequence[str]) -> int:
    """Judge, and write the results.

    Exit code 0 if every candidate has a verdict from a report, whatever it is; 1 if one was refused, too slow or
    broken, and with --strict if one is not right; 2 for wrong usage, 3 if this machine lacks something, 130 if
    interrupted.
    """
    own, more = _parted(arguments)
    given = _parser().parse_args(own)
    if given.operator and given.reference:
        raise UsageError("--operator and --reference were given, but a candidate is judged by one of them")
    if given.parquet:
        input.require_pyarrow()
    names = ("operator", "reference", "example", "function")
    items = input.read(given.input, {name: getattr(given, name) for name in names if getattr(given, name)})
    plan = api.FleetPlan(
        device=given.device or api.usual_device(),
        options=(*_options(given), *more),
        limit=given.limit,
        workers=given.workers,
        per_gpu=given.per_gpu,
        command=api.JUDGE if given.cold else (),
        ray=given.ray,
    )
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        results = _judged(items, plan, given.results)
    except KeyboardInterrupt:
        print(f"interrupted; the same command goes on where it stopped: {given.results}", file=sys.stderr)
        return _INTERRUPTED
    if given.parquet:
        parquet.write(results, given.parquet)
    unjudged = any(found.verdict in OTHER_VERDICTS for found in results)
    return int(unjudged or (given.strict and not all(found.right for found in results)))


def _parted(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """The options of this command, and those after `--`, which are for `judge`."""
    given = list(arguments)
    place = given.index("--") if "--" in given else len(given)
    return given[:place], given[place + 1 :]


def _options(given: argparse.Namespace) -> list[str]:
    found = [f"--{name}={value}" for name in ("dtype", "property") for value in getattr(given, name)]
    return found + ([f"--level={given.level}"] if given.level else [])


def _judged(items: list[Item], plan: api.FleetPlan, path: Path) -> list[CandidateResult]:
    """All results. Raises UsageError if the judge refuses the options."""
    found: list[CandidateResult] = []
    with Display(len(items), Console()) as display, closing(api.run(items, plan, path, [display])) as results:
        found += results
    print(f"{display.summary()}\nresults: {path}")
    return found
