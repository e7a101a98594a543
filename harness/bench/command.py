"""`python -m harness bench`: measure, write the record, show it."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import torch
from rich.console import Console

from backends.base import CPU, CUDA
from harness import tables
from harness.bench import measurement, record
from harness.bench.measurement import Settings
from harness.bench.tables import show
from harness.options import Selection, slots
from spec.contract import PHASES

DEFAULT = Settings()


def add(commands: Any) -> None:
    """Add the command to those of `python -m harness`."""
    command: argparse.ArgumentParser = commands.add_parser(
        "bench", help="what backends cost, as a record and as tables"
    )
    add_selection(command)
    for name, meaning in (("case", "only this case"), ("phase", f"one of {', '.join(PHASES)}")):
        command.add_argument(
            f"--{name}", action="append", default=[], metavar=name.upper(), help=f"{meaning}; repeatable"
        )
    command.add_argument("--threads", type=int, action="append", metavar="N", help="on the CPU; default: 1, then 2")
    command.add_argument("--rounds", type=int, default=DEFAULT.rounds, metavar="N", help="samples of each")
    command.add_argument("--block", type=float, default=DEFAULT.block_seconds, metavar="S", help="seconds of a sample")
    command.add_argument("--longest", type=float, default=DEFAULT.longest, metavar="S", help="leave out slower calls")
    command.add_argument("--seed", type=int, default=0, metavar="N", help="of the order in which things are timed")
    command.add_argument("--show", type=Path, metavar="FILE", help="show a record instead of making one")
    command.add_argument("-o", "--output", type=Path, default=Path("reports/bench.json"), metavar="FILE")
    command.set_defaults(run=run)


def add_selection(command: argparse.ArgumentParser) -> None:
    """The options that say what is measured; as those of `judge`."""
    for name in ("operator", "backend", "device", "dtype", "candidate"):
        command.add_argument(f"--{name}", action="append", default=[], metavar=name.upper(), help="repeatable")
    for name in ("backend-path", "spec-path"):
        command.add_argument(f"--{name}", action="append", default=[], type=Path, metavar="PATH", help="repeatable")


def selection(given: argparse.Namespace) -> Selection:
    """What was asked for: on the device that this machine has, in float32, unless it was said otherwise."""
    # A candidate alone has nothing to be compared with.
    backends = tuple(given.backend) or (("python-autograd",) if given.candidate else ())
    return Selection(
        operators=tuple(given.operator),
        backends=backends,
        devices=tuple(given.device) or (CUDA if torch.cuda.is_available() else CPU,),
        dtypes=tuple(given.dtype) or ("float32",),
        candidates=tuple(given.candidate),
        backend_paths=tuple(given.backend_path),
        spec_paths=tuple(given.spec_path),
    )


def run(given: argparse.Namespace) -> int:
    """Exit code 1 where something was wrong; what this machine cannot run is no fault."""
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
    return 1 if any(entry["reason"].startswith(measurement.WRONG) for entry in made["missing"]) else 0
