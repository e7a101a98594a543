"""The contents of freshly allocated memory do not matter: every element is written before it is read.

`torch.empty` returns what was there before: usually zeros, or the right answer of the last call, but not always. So
memory is poisoned in two ways. PyTorch fills its own empty tensors with NaN under
`torch.utils.deterministic.fill_uninitialized_memory`, in C++ too. Other memory (raw storages, the caching allocator on
CUDA) is poisoned by hand: tensors of the sizes of the call are filled and freed just before it, and allocators reuse
first what was freed last. The share of new tensors that really held poison is measured and reported.

NaN propagates through sums and products but not through a maximum; a large finite number does. Both are used.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import torch
import torch.utils.deterministic as torch_deterministic
from torch import Tensor

from harness.errors import Failure, NoEvidence
from harness.judging.oracle import expected
from harness.judging.property import Property
from harness.judging.scenario import Scenario, realise
from harness.judging.scenarios import representative, smallest, tagged
from harness.judging.subject import Subject
from harness.judging.tally import FOLLOWS, Tally
from harness.report.levels import SAFE

#: An attribute that the module defines by a class of its own, so that mypy does not see it.
_FILL = "fill_uninitialized_memory"

#: How often each poison is laid out at each size, with a new seed each time.
ROUNDS = 2

#: How many tensors of each size a call may allocate: as many are allocated to measure what comes back.
DEPTH = 8

#: Bytes of poison for each size of block, in 8 to 128 blocks. With glibc 2.36, four in ten of all new tensors, and
#: nearly all of a hundred bytes and more, then hold poison. For smaller ones the C library uses its own small blocks
#: first; therefore the larger of two sizes is tested as well.
BYTES = 2**16

#: Extra bytes of a block: an aligned block (64 bytes) is cut out of one that has room for the alignment and for the C
#: library's own words. Allocators that round sizes, as on CUDA, are not affected.
ROOM = (0, 112, 144)


def check(subject: Subject) -> dict[str, Any]:
    """PyTorch's own filling, then two poisons by hand, at three sizes."""
    tally = Tally(subject)
    operator = subject.operator
    scenarios = [smallest(operator), *(Scenario.of(case) for case in tagged(operator, "benchmark")[:1])]
    # A size at which whole vectors leave a tail.
    tails = [case for case in tagged(operator, "size") if case != representative(operator)]
    scenarios += [Scenario.of(case) for case in tails if min(case.sizes.values()) > 1][:1]
    with _filled_by_torch():
        _is_filled(subject)
        for scenario in scenarios:
            _run(tally, scenario, None, "with new memory filled with NaN")
    returned = []
    for poison in (float("nan"), torch.finfo(subject.dtype).max / 4):
        for scenario in scenarios[:2]:
            for seed in range(ROUNDS):
                seeded = replace(scenario, seed=seed)
                returned.append(_came_back(subject, seeded, poison))
                _run(tally, seeded, poison, f"with freed memory full of {poison:.3g}")
    share = sum(returned) / len(returned)
    if share == 0:
        raise NoEvidence("no poisoned block came back from the allocator: memory from outside torch was not tested")
    return {**tally.figures(), "poisoned blocks that came back": round(share, 2)}


def _run(tally: Tally, scenario: Scenario, poison: float | None, when: str) -> None:
    subject = tally.subject
    measure = expected(subject.operator, scenario, subject.dtype)
    call = subject.realise(scenario)
    try:
        kept = _poison(subject, scenario, poison)
        outputs = subject.outputs(call, scenario)
        tally.hold_all(scenario, measure, outputs, {})
        del kept
        kept = _poison(subject, scenario, poison)
        gradients = subject.gradients(call, outputs, scenario)
        del kept
        tally.hold_all(scenario, measure, (), gradients)
    except Failure as failure:
        if _is_the_same_over_zeros(tally, scenario, failure):
            raise failure.prefixed(FOLLOWS) from failure
        raise failure.prefixed(f"{when}, some of which was read: ") from failure
    tally.scenarios += 1


def _is_the_same_over_zeros(tally: Tally, scenario: Scenario, failure: Failure) -> bool:
    """Whether the call is wrong in the same element by the same value where memory holds zeros: then it reads none."""
    filled = getattr(torch_deterministic, _FILL)
    setattr(torch_deterministic, _FILL, False)
    kept = _poison(tally.subject, scenario, 0.0)
    try:
        tally.run(scenario)
    except Failure as plain:
        return str(plain).partition("\n")[0] == str(failure).partition("\n")[0]
    finally:
        del kept
        setattr(torch_deterministic, _FILL, filled)
    return False


def _shapes(subject: Subject, scenario: Scenario) -> list[tuple[int, ...]]:
    """Shapes of outputs, of gradients, and of the steps in between."""
    operator, sizes = subject.operator, dict(scenario.sizes)
    shapes = {arg.shape_for(sizes): None for arg in (*operator.inputs, *operator.outputs)}
    # What has another dtype is as large as that many elements of the call's own.
    for arg in operator.outputs:
        own = arg.dtype_in(subject.dtype).itemsize
        if own != subject.dtype.itemsize:
            shapes[(-(-math.prod(arg.shape_for(sizes)) * own // subject.dtype.itemsize),)] = None
    inputs = realise(operator, scenario, subject.dtype).inputs
    shapes |= {tuple(step.shape): None for step in operator.intermediates(*inputs).values()}
    return list(shapes)


def _poison(subject: Subject, scenario: Scenario, poison: float | None) -> list[Tensor]:
    """Fill blocks of every size that the call may allocate, and free them.

    The returned tensors lie between the blocks. Keep them while the blocks should stay separate: the C library merges
    free neighbours.
    """
    if poison is None:
        return []
    blocks, between = [], []
    for shape in _shapes(subject, scenario):
        for room in ROOM:
            elements = math.prod(shape) + room // subject.dtype.itemsize
            for _ in range(max(8, min(128, BYTES // max(elements * subject.dtype.itemsize, 1)))):
                blocks.append(torch.full((elements,), poison, dtype=subject.dtype, device=subject.torch_device))
                between.append(torch.zeros(1, device=subject.torch_device))
    return between


def _came_back(subject: Subject, scenario: Scenario, poison: float) -> float:
    """The share of new tensors that hold the poison in their last element; the C library writes to the first."""
    shapes = _shapes(subject, scenario) * DEPTH
    kept = _poison(subject, scenario, poison)
    new = [torch.empty(shape, dtype=subject.dtype, device=subject.torch_device) for shape in shapes]
    del kept
    last = [tensor.flatten()[-1] for tensor in new if tensor.numel()]
    held = [bool(value.isnan()) if poison != poison else bool(value == value.new_tensor(poison)) for value in last]
    return sum(held) / max(len(held), 1)


@contextmanager
def _filled_by_torch() -> Iterator[None]:
    """PyTorch fills empty tensors with NaN. An operation without a deterministic form runs anyway (warn_only)."""
    was = (
        torch.are_deterministic_algorithms_enabled(),
        torch.is_deterministic_algorithms_warn_only_enabled(),
        getattr(torch_deterministic, _FILL),
    )
    try:
        with warnings.catch_warnings():
            # With CUDA, matrix products warn that they may not be deterministic, which is not tested here.
            warnings.filterwarnings("ignore", message=".*[Dd]eterminis.*")
            torch.use_deterministic_algorithms(True, warn_only=True)
            setattr(torch_deterministic, _FILL, True)
            yield
    finally:
        torch.use_deterministic_algorithms(was[0], warn_only=was[1])
        setattr(torch_deterministic, _FILL, was[2])


def _is_filled(subject: Subject) -> None:
    if not bool(torch.empty(16, dtype=subject.dtype, device=subject.torch_device).isnan().all()):
        raise NoEvidence("torch.empty was not filled with NaN: fill_uninitialized_memory has no effect here")


PROPERTY = Property("uninitialised-memory", "the contents of new memory reach no result", check, level=SAFE)
