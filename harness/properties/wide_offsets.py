"""Elements that lie more than 2^31 apart are read at the right place: no 32-bit index arithmetic overflows.

Each dimension of an input is spread in turn, so that its last slice lies beyond element 2^31 of the storage. The
storage is reserved, but only the elements themselves are touched. On the CPU this costs a few pages of
memory, not gigabytes.

The last dimension of a factor of a matrix product in the reference is not spread. With columns that far apart, the
libraries themselves give a wrong product, refuse it or crash (cuBLAS on an H200; oneDNN in half types), which is no
fault of a candidate. A product may be refused for other distances too, since an exception misleads nobody; the figures
name those.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves

from backends.base import CUDA
from harness.errors import Failure, NotApplicable
from harness.judging.oracle import expected
from harness.judging.property import Property
from harness.judging.scenario import Call, Scenario, realise
from harness.judging.scenarios import representative
from harness.judging.subject import CANDIDATE_ERRORS, Subject, one_line
from harness.judging.tally import Tally
from harness.report.levels import VALUES
from spec.modes import EagerMode
from spec.operations import MOVES, PRODUCTS


def check(subject: Subject) -> dict[str, Any]:
    """Each input of two dimensions or more in turn, with its last slice along each dimension beyond element 2^31."""
    if subject.device == CUDA and torch.cuda.mem_get_info()[0] < 24 * 2**30:
        raise NotApplicable("needs 24 GB of free device memory, which has no lazily touched pages")
    tally = Tally(subject)
    scenario = Scenario.of(representative(subject.operator))
    measure = expected(subject.operator, scenario, subject.dtype)
    factors = _factors(subject, scenario)
    ranks = [len(arg.shape) for arg in subject.operator.inputs]
    inner = [(k, dim) for k, rank in enumerate(ranks) if rank > 1 for dim in range(rank - (k in factors))]
    if not inner:
        raise NotApplicable(f"no input of {subject.operator.title} has two dimensions")
    refused = {}
    for k, dim in inner:
        call = subject.realise(scenario)
        inputs = list(call.inputs)
        inputs[k] = _spread(call.inputs[k].detach(), dim).requires_grad_(call.inputs[k].requires_grad)
        call = Call(tuple(inputs), call.cotangents)
        tally.scenarios += 1
        try:
            outputs = subject.outputs(call, scenario)
            # Before backward: a wrong one may make a gradient as large as the storage.
            tally.hold_all(scenario, measure, outputs, {})
            tally.hold_all(scenario, measure, (), subject.gradients(call, outputs, scenario))
        except Failure as failure:
            if not isinstance(failure.__cause__, CANDIDATE_ERRORS):
                name = subject.operator.inputs[k].name
                apart = f"{inputs[k].stride(dim):,} elements apart in memory along dimension {dim}"
                raise failure.prefixed(f"{name} is {apart}, beyond 2^31 in all: ") from failure
            refused[f"{subject.operator.inputs[k].name}, dimension {dim}"] = one_line(failure.__cause__)
    if subject.device == CUDA:
        torch.cuda.empty_cache()  # gigabytes that no other worker on this GPU could use
    return {**tally.figures(), "refused": refused} if tally.evidence else {"refused": refused}


class _Watch(EagerMode):  # type: ignore[no-untyped-call]
    """Which of these tensors become factors of a matrix product, directly or after being moved."""

    def __init__(self, tensors: tuple[Tensor, ...]) -> None:
        super().__init__()
        self.found: set[int] = set()
        #: By id: each tensor made of these by moving alone, and its origin. Kept, so that no other gets its id.
        self._moved = {id(tensor): (tensor, {k}) for k, tensor in enumerate(tensors)}

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        made_of: set[int] = set()
        for leaf in tree_leaves(args):
            made_of |= self._moved.get(id(leaf), (leaf, set()))[1]
        if func in PRODUCTS:
            self.found |= made_of
        elif func in MOVES:
            self._moved |= {id(leaf): (leaf, made_of) for leaf in tree_leaves(result)}
        return result


def _factors(subject: Subject, scenario: Scenario) -> set[int]:
    """The positions of the inputs that the reference multiplies as matrices."""
    call = realise(subject.operator, scenario, torch.float64)
    watch = _Watch(call.inputs)
    with torch.no_grad(), watch:
        subject.operator.forward(*call.inputs)
    return watch.found


def _spread(values: Tensor, dim: int) -> Tensor:
    """The same values, `dim` outermost in memory and its last slice more than 2^31 elements from its first."""
    slices = values.movedim(dim, 0).contiguous()
    stride = 2**31 // max(len(slices) - 1, 1) + 64
    storage = torch.empty((len(slices) - 1) * stride + slices[0].numel(), dtype=values.dtype, device=values.device)
    spread = storage.as_strided(slices.shape, (stride, *slices.stride()[1:]))
    return spread.copy_(slices).movedim(0, dim)


PROPERTY = Property(
    "wide-offsets",
    "rows and columns 2^31 elements apart are read right, or refused",
    check,
    level=VALUES,
    dtypes=("float32", "float16", "bfloat16"),
    why_only="addresses are the same code in every dtype; the narrow ones need less memory",
)
