"""Values of an LSTM cell: gates that are open or shut, and parameters of 0."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from spec.contract import Invariant, TensorArg
from spec.recurrent import FAR, invariant, with_gates, with_zero_parameters


def invariants(inputs: Sequence[TensorArg]) -> tuple[Invariant, ...]:
    """What such gates, and zero parameters, make of the state."""

    def kept(old_cell: Tensor, **_: Tensor) -> dict[str, Tensor]:
        return {"new_h": torch.zeros_like(old_cell), "new_cell": old_cell}

    def halved(old_cell: Tensor, **_: Tensor) -> dict[str, Tensor]:
        return {"new_h": torch.tanh(old_cell / 2) / 2, "new_cell": old_cell / 2}

    claim = "a forget gate of 1 and an input gate of 0 keep the cell, and an output gate of 0 hides it"
    zero = "zero weights and biases give new_cell = old_cell/2 and new_h = tanh(old_cell/2)/2"
    return (
        invariant(inputs, "kept-cell", claim, lambda drawn: with_gates(drawn, (-FAR, FAR, 0.0, -FAR)), kept),
        invariant(inputs, "zero-parameters", zero, with_zero_parameters, halved),
    )
