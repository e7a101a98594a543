"""Time one backend and its rivals at each point of a grid."""

from __future__ import annotations

import multiprocessing
import random
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import torch
from torch import Tensor

from backends.base import CUDA
from harness.bench import correctness, rounds
from harness.discovery import operators
from harness.errors import Absent, Failure
from harness.judging.subject import Subject
from harness.measuring import clocks, work
from harness.running.selection import DTYPE_NAMES, Selection, slots
from spec.contract import FORWARD, FORWARD_AND_BACKWARD, Case, Operator
from tools.sweep.grid import GRIDS, Grid, Point

PHASES = (FORWARD, FORWARD_AND_BACKWARD)
NATIVE, COMPILED = "torch-native", "torch.compile"
#: Rounds, and seconds of each sample.
ROUNDS, BLOCK = 9, 0.0005

Row = dict[str, Any]
Ring = list[tuple[work.Inputs, work.Inputs]]


def inputs_of(operator: Operator, case: Case, dtype: torch.dtype, device: str) -> Ring:
    """Standard normal numbers, made on the device; as many as do not fit its cache."""
    generator = torch.Generator(device).manual_seed(0)

    def made(shapes: Sequence[tuple[int, ...]]) -> tuple[Tensor, ...]:
        return tuple(torch.randn(shape, generator=generator, device=device, dtype=dtype) for shape in shapes)

    inputs = [arg.shape_for(case.sizes) for arg in operator.inputs]
    outputs = [arg.shape_for(case.sizes) for arg in operator.outputs]
    elements = sum(torch.Size(shape).numel() for shape in (*inputs, *outputs))
    return [(made(inputs), made(outputs)) for _ in range(work.ring_length(elements * dtype.itemsize, device))]


def compiled(grid: Grid) -> Callable[..., Any]:
    """The reference, compiled for the sizes of its first call alone."""
    torch._dynamo.reset()
    function: Callable[..., Any] = torch.compile(grid.reference, dynamic=False, fullgraph=True)
    return function


def compile_share(
    name: str, device: str, dtypes: Sequence[str], points: Sequence[Point], share: int, shares: int
) -> None:
    """Compile every `shares`-th point: what PyTorch's cache on disk keeps, and another process finds."""
    grid, operator = GRIDS[name], operators()[name]
    for number, case in enumerate(grid.cases(points)):
        if number % shares == share:
            for dtype in dtypes:
                for phase in PHASES:
                    inputs, cotangents = inputs_of(operator, case, DTYPE_NAMES[dtype], device)[0]
                    work.prepare(compiled(grid), [(inputs, cotangents)], phase, device).once()


def compile_ahead(name: str, device: str, dtypes: Sequence[str], shares: int, points: Sequence[Point] = ()) -> None:
    """Compile these points, or all, in that many processes at the same time."""
    spawn = multiprocessing.get_context("spawn")
    given = (name, device, dtypes, points)
    processes = [spawn.Process(target=compile_share, args=(*given, k, shares)) for k in range(shares)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()


def subjects_of(name: str, backend: str, device: str, dtype: str) -> dict[str, Subject]:
    """The backend, and PyTorch's own operator if there is one, in the operator's first form."""
    chosen = slots(Selection(operators=(name,), backends=(backend, NATIVE), devices=(device,), dtypes=(dtype,)))
    found = {}
    for slot in chosen:
        with suppress(Absent):
            found[slot.backend] = slot.subject().in_form(slot.operator)
    return found


def measure(
    grid: Grid,
    backend: str,
    device: str,
    dtypes: Sequence[str],
    say: Callable[[str], None],
    keep: Callable[[list[Row], list[Row]], None] = lambda _rows, _missing: None,
    points: Sequence[Point] = (),
) -> tuple[list[Row], list[Row]]:
    """(rows, missing): a row for each of these points, or all, for each dtype and phase, with seconds and ratios; and
    what was wrong there.

    `keep` gets them after each point, so that a run that is ended early loses only its current one.
    """
    name, draw = grid.operator, random.Random(0)
    rows: list[Row] = []
    missing: list[Row] = []
    for dtype in dtypes:
        subjects = subjects_of(name, backend, device, dtype)
        for case in grid.cases(points):
            say(f"{name} {dtype} {case.name}")
            place = {"operator": name, "dtype": dtype, "sizes": dict(case.sizes)}
            own = subjects[backend]
            if correctness.is_small(own, case):
                try:
                    correctness.check(own, case)
                except Failure as error:
                    missing.append({**place, "reason": f"wrong: {error}"})
                    continue
            inputs = inputs_of(own.operator, case, own.dtype, device)
            for phase in PHASES:
                timed = _together(grid, backend, device, subjects, inputs, phase, draw)
                rows.append({**place, "phase": phase, **timed})
            keep(rows, missing)
    return rows, missing


def _together(
    grid: Grid, backend: str, device: str, subjects: dict[str, Subject], inputs: Ring, phase: str, draw: random.Random
) -> Row:
    functions = {name: subject.function for name, subject in subjects.items()} | {COMPILED: compiled(grid)}
    clock = clocks.GRAPH if device == CUDA else clocks.WALL
    with clocks.preparing(clock, device):
        works = {name: work.prepare(function, inputs, phase, device) for name, function in functions.items()}
        for made in works.values():
            made.once()
    samplers = {name: rounds.WorkSampler(made, clocks.clock(clock), BLOCK) for name, made in works.items()}
    taken = rounds.take(samplers, ROUNDS, draw)
    return {
        "seconds": {name: rounds.row_times(samples)["seconds"] for name, samples in taken.items()},
        "ratios": {name: rounds.ratio(other, taken[backend]) for name, other in taken.items() if name != backend},
    }
