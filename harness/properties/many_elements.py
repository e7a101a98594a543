"""More than 2^31 elements: right in the first rows, in the last, and where a 32-bit index would wrap around.

Every row of the batch is independent, and the cotangents are zero except in the rows that are compared. So the oracle
is that of a small call with those rows only, also for the gradients of weights and bias.

A "large" case fits beside all that a right implementation keeps. A "largest" one, in which a smaller tensor has more
than 2^31 elements, fits beside what the contract lists as saved. An implementation that keeps more may run out of
memory there: that is written down, and is no failure.
"""

from __future__ import annotations

import tempfile
import time
from math import prod
from pathlib import Path
from typing import Any

import torch
from filelock import FileLock

from backends.base import CUDA
from harness.errors import Failure, NotApplicable
from harness.judging.oracle import expected_of
from harness.judging.property import Property
from harness.judging.scenario import Call, Scenario
from harness.judging.scenarios import tagged
from harness.judging.subject import Subject
from harness.judging.tally import Tally
from harness.report.levels import VALUES
from spec.contract import Operator, Sizes, TensorArg, evaluate

#: The memory of the least economical right implementation: autograd that keeps every step of half types in float32.
_NEEDED_BYTES = 96 * 2**30
#: How an implementation fails that needs more memory than there is.
_TOO_LARGE = "raised OutOfMemoryError"


def check(subject: Subject) -> dict[str, Any]:
    """The contract's large cases, complete, compared at chosen rows; the largest ones where there is memory."""
    tally = Tally(subject)
    left_out: dict[str, str] = {}
    # Runs may share the GPU: two of these at the same time would not fit.
    with FileLock(Path(tempfile.gettempdir()) / "lltm-conformance-many-elements.lock"):
        free = _free_memory()
        if free < _NEEDED_BYTES:
            raise NotApplicable(f"needs {_NEEDED_BYTES >> 30} GB of free device memory, there are {free >> 30}")
        try:
            cases = tagged(subject.operator, "large")
            if not cases or any(arg.row_dim not in (0, None) for arg in _tensors(subject.operator)):
                raise NotApplicable(f"{subject.operator.title} has no large case whose rows stand for themselves")
            for case in cases:
                _run(tally, subject, Scenario.of(case))
            for case in tagged(subject.operator, "largest"):
                if why := _without_memory(tally, subject, Scenario.of(case)):
                    left_out[case.name] = why
        finally:
            torch.cuda.empty_cache()
    return {**tally.figures(), **({"left out": left_out} if left_out else {})}


def _free_memory(needed: int = _NEEDED_BYTES) -> int:
    """Free bytes on the GPU. Waits half a minute at most for what other processes use, if that can help."""
    torch.cuda.empty_cache()
    free, all_of_it = torch.cuda.mem_get_info()
    deadline = time.monotonic() + 30
    while free < needed <= all_of_it and time.monotonic() < deadline:
        time.sleep(1)
        free = torch.cuda.mem_get_info()[0]
    return free


def _without_memory(tally: Tally, subject: Subject, scenario: Scenario) -> str:
    """Judge a largest case. Returns why it could not be, for lack of memory; empty if it was. Raises Failure."""
    needed = _bytes(subject, dict(scenario.sizes))
    free = _free_memory(needed)
    if free < needed:
        return f"needs {needed >> 30} GB of free device memory, there are {free >> 30}"
    try:
        _run(tally, subject, scenario)
    except Failure as failure:
        if _TOO_LARGE not in str(failure.figures.get("raised", "")):
            raise
        return f"needs more than the {free >> 30} GB of free device memory"
    return ""


def _bytes(subject: Subject, sizes: Sizes) -> int:
    """All tensors of a call as the contract has them, each with its gradient or cotangent."""
    tensors = (*_tensors(subject.operator), *subject.operator.saved)
    return 2 * sum(prod(arg.shape_for(sizes)) for arg in tensors) * subject.dtype.itemsize


def _tensors(operator: Operator) -> tuple[TensorArg, ...]:
    return (*operator.inputs, *operator.outputs)


def _rows(operator: Operator, sizes: Sizes) -> torch.Tensor:
    """First and last rows, and those at which the offset of some tensor passes a multiple of 2^31."""
    batch = sizes["batch"]
    widths = {prod(arg.shape_for(sizes)[1:]) for arg in _tensors(operator) if arg.row_dim == 0 and len(arg.shape) > 1}
    widths |= {arg.shape_for(sizes)[0] for arg in operator.inputs if arg.row_dim is None}
    edges = [0, batch] + [round(wraps * 2**31 / width) for width in widths if width for wraps in (1, 2)]
    near = {row for edge in edges for row in range(edge - 4, edge + 4) if 0 <= row < batch}
    return torch.tensor(sorted(near))


def _run(tally: Tally, subject: Subject, scenario: Scenario) -> None:
    operator, sizes = subject.operator, dict(scenario.sizes)
    device = torch.device(subject.device)
    generator = torch.Generator(device).manual_seed(scenario.seed)
    rows = _rows(operator, sizes).to(device)

    def draw(shape: tuple[int, ...], scale: float) -> torch.Tensor:
        return torch.randn(shape, generator=generator, device=device, dtype=subject.dtype).mul_(scale)

    def argument(arg: TensorArg) -> torch.Tensor:
        shape = arg.shape_for(sizes)
        if arg.uniform:
            low, high = (evaluate(bound, sizes) for bound in (arg.low, arg.high))
            values = torch.rand(shape, generator=generator, device=device, dtype=subject.dtype)
            return values.mul_(high - low).add_(low).requires_grad_(arg.differentiable)
        if arg.is_floating:
            return draw(shape, evaluate(arg.scale, sizes)).requires_grad_(arg.differentiable)
        least, most = (int(evaluate(bound, sizes)) for bound in (arg.low, arg.high))
        return torch.randint(least, most, shape, generator=generator, device=device).to(arg.dtype)

    inputs = tuple(argument(arg) for arg in operator.inputs)
    cotangents: list[torch.Tensor | None] = []
    for arg in operator.outputs:
        if not arg.is_floating:
            cotangents.append(None)
            continue
        cotangent = torch.zeros(arg.shape_for(sizes), device=device, dtype=arg.dtype_in(subject.dtype))
        cotangent[rows] = draw((len(rows), *cotangent.shape[1:]), 1.0)
        cotangents.append(cotangent)
    small = Call(
        tuple(t.detach()[rows] if a.row_dim == 0 else t.detach() for a, t in zip(operator.inputs, inputs, strict=True)),
        tuple(None if cotangent is None else cotangent[rows] for cotangent in cotangents),
    )
    call = Call(inputs, tuple(cotangents))
    outputs = subject.outputs(call, scenario)
    gradients = subject.gradients(call, outputs, scenario)
    batched = {arg.name for arg in operator.inputs if arg.row_dim == 0}
    tally.scenarios += 1
    tally.hold_all(
        scenario,
        expected_of(operator, small, subject.dtype),
        tuple(output[rows] for output in outputs),
        {name: gradient[rows] if name in batched else gradient for name, gradient in gradients.items()},
    )


PROPERTY = Property(
    "many-elements",
    "right with more than 2^31 elements",
    check,
    large=True,
    level=VALUES,
    dtypes=("float32", "float16"),
    devices=(CUDA,),
    why_only="it needs the memory and the speed of a large GPU; indices are the same code in every dtype",
)
