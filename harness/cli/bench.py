"""`python -m harness bench`: measure, write the record, show it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch
from rich.console import Console

from backends.base import CPU, CUDA
from harness.bench import measurement, record
from harness.bench.measurement import Settings
from harness.bench.tables import show
from harness.cli import parsing
from harness.cli.main import COMMANDS
from harness.rendering import tables
from harness.running import selection_options
from harness.running.selection import Selection, slots
from spec.contract import PHASES

DEFAULT = Settings()


def main(arguments: Sequence[str]) -> int:
    """Exit code 1 if a backend was wrong or suspect; what this machine cannot run does not count."""
    given = _parser().parse_args(arguments)
    console = tables.console(sys.stdout)
    if given.show:
        show(record.read(given.show, option="--show"), console)
        return 0
    settings = Settings(
        rounds=given.rounds,
        block_seconds=given.block,
        longest=given.longest,
        threads=tuple(given.threads or DEFAULT.threads),
        cases=tuple(given.case),
        phases=tuple(given.phase) or PHASES,
        seed=given.seed,
    )
    note = Console(stderr=True)
    made = measurement.measure(
        slots(selection(given)),
        settings,
        say=lambda text: note.print(text, markup=False),
        keep=lambda so_far: record.write(so_far, given.output),
    )
    record.write(made, given.output)
    show(made, console)
    console.print(f"\nrecord: {given.output}")
    return 1 if any(entry["status"] in (record.WRONG, record.SUSPECT) for entry in made["missing"]) else 0


def _parser() -> argparse.ArgumentParser:
    parser = parsing.parser("bench", COMMANDS["bench"])
    selection_options.add(parser.add_argument)
    for name, meaning in (("case", "only this case"), ("phase", f"one of {', '.join(PHASES)}")):
        parser.add_argument(
            f"--{name}", action="append", default=[], metavar=name.upper(), help=f"{meaning} (repeatable)"
        )
    parser.add_argument("--threads", type=int, action="append", metavar="N", help="on the CPU; default: 1, then 2")
    parser.add_argument("--rounds", type=int, default=DEFAULT.rounds, metavar="N", help="samples of each")
    parser.add_argument("--block", type=float, default=DEFAULT.block_seconds, metavar="S", help="seconds of a sample")
    parser.add_argument("--longest", type=float, default=DEFAULT.longest, metavar="S", help="leave out slower calls")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="seed of the order of the timings")
    parser.add_argument("--show", type=Path, metavar="FILE", help="show a record instead of making one")
    parsing.add_output(parser, "where the record goes", Path("reports/bench.json"))
    return parser


def selection(given: argparse.Namespace) -> Selection:
    """The selection of the command line; by default float32, on the GPU if there is one, else on the CPU."""
    found = selection_options.read(given)
    # A candidate is compared with the backends, so these are included by default.
    alone = ("python-autograd",) if found.candidates else ()
    return replace(
        found,
        backends=found.backends or alone,
        devices=found.devices or (CUDA if torch.cuda.is_available() else CPU,),
        dtypes=found.dtypes or ("float32",),
    )
