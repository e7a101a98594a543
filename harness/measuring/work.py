"""The work that is timed: one phase of one implementation, over a ring of inputs.

Each call takes the next inputs of the ring, so that no call can reuse what the previous call left in registers, cache
lines or a memo.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

FORWARD, BACKWARD, FORWARD_AND_BACKWARD = PHASES = ("forward", "backward", "forward+backward")

#: The most inputs of a ring, and the most bytes of all of them on a CPU and on a GPU.
RING = 12
RING_BYTES = {"cpu": 2**26, "cuda": 2**31}

Inputs = tuple[Tensor, ...]
Step = Callable[[], Any]


@dataclass
class Work:
    """The calls that a clock times, one for each entry of the ring; `graphs` belongs to the graph clock."""

    steps: list[Step]
    device: str
    graphs: dict[int, Any] = field(default_factory=dict, repr=False)
    _next: int = 0

    def once(self) -> None:
        """Make one call."""
        step = self.steps[self._next % len(self.steps)]
        self._next += 1
        step()


def ring_length(call_bytes: int, device: str) -> int:
    """How many inputs of that many bytes a ring on `device` holds: at least one, at most RING."""
    return max(1, min(RING, RING_BYTES[device] // max(call_bytes, 1)))


def prepare(function: Callable[..., Any], ring: Sequence[tuple[Inputs, Inputs]], phase: str, device: str) -> Work:
    """The work of a phase, from (inputs, cotangents) pairs.

    `forward` runs without gradients. `backward` keeps the graph of a forward that runs here, once for each entry of the
    ring, and frees it with the work. Raises ValueError for an unknown phase.
    """
    if phase not in PHASES:
        raise ValueError(f"phase was {phase!r}, but should be one of {', '.join(PHASES)}")
    return Work([_step(function, inputs, cotangents, phase) for inputs, cotangents in ring], device)


def _step(function: Callable[..., Any], inputs: Inputs, cotangents: Inputs, phase: str) -> Step:
    asked = _differentiable(inputs)
    leaves = tuple(
        tensor.detach().requires_grad_(phase != FORWARD and wanted)
        for tensor, wanted in zip(inputs, asked, strict=True)
    )
    wanted = tuple(leaf for leaf, is_asked in zip(leaves, asked, strict=True) if is_asked)

    def forward() -> Any:
        with torch.no_grad():
            return function(*leaves)

    def outputs() -> tuple[Tensor, ...]:
        found = function(*leaves)
        found = (found,) if isinstance(found, Tensor) else tuple(found)
        return tuple(y for y in found if y.is_floating_point() or y.is_complex())

    def forward_and_backward() -> Any:
        return torch.autograd.grad(outputs(), wanted, cotangents)

    if phase == FORWARD:
        return forward
    if phase == FORWARD_AND_BACKWARD:
        return forward_and_backward
    made = outputs()
    return lambda: torch.autograd.grad(made, wanted, cotangents, retain_graph=True)


def _differentiable(inputs: Inputs) -> tuple[bool, ...]:
    """Of which inputs the gradient is timed: those that require grad, or where none does, those of real numbers."""
    if any(tensor.requires_grad for tensor in inputs):
        return tuple(tensor.requires_grad for tensor in inputs)
    return tuple(tensor.is_floating_point() or tensor.is_complex() for tensor in inputs)
