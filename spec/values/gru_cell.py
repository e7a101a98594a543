"""Values of a GRU cell: gates that are open or shut, and parameters of 0."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from spec.contract import Invariant, TensorArg
from spec.recurrent import FAR, invariant, with_gates, with_zero_parameters


def invariants(inputs: Sequence[TensorArg]) -> tuple[Invariant, ...]:
    """What such gates, and zero parameters, make of the state."""

    def kept(old_h: Tensor, **_: Tensor) -> dict[str, Tensor]:
        return {"new_h": old_h}

    def replaced(old_h: Tensor, **_: Tensor) -> dict[str, Tensor]:
        return {"new_h": torch.ones_like(old_h)}

    def halved(old_h: Tensor, **_: Tensor) -> dict[str, Tensor]:
        return {"new_h": old_h / 2}

    return (
        invariant(
            inputs, "kept-state", "an update gate of 1 keeps the state", lambda v: with_gates(v, (0.0, FAR, 1.0)), kept
        ),
        invariant(
            inputs,
            "replaced-state",
            "an update gate of 0 replaces the state by the candidate",
            lambda v: with_gates(v, (0.0, -FAR, FAR)),
            replaced,
        ),
        invariant(
            inputs, "zero-parameters", "zero weights and biases give new_h = old_h/2", with_zero_parameters, halved
        ),
    )
