"""Values of RMSNorm: rows at the limits of eps and of the dtypes, and rows whose root mean square is known."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from spec.contract import Draw, Invariant, Sizes, TensorArg
from spec.rowwise import Change, Drawn, as_rows, non_finite, ordinary, scaled


def _zero_rows(drawn: Drawn, _draw: Draw, _dtype: torch.dtype) -> None:
    for name in {"input", "residual"} & set(drawn):
        as_rows(drawn[name])[::2] = 0.0


def _outlier(drawn: Drawn, _draw: Draw, _dtype: torch.dtype) -> None:
    as_rows(drawn["input"])[:, -1:] = 1000.0


def _cancelling(drawn: Drawn, _draw: Draw, _dtype: torch.dtype) -> None:
    if "residual" in drawn:
        as_rows(drawn["residual"])[::2] = -as_rows(drawn["input"])[::2]


def changes(eps: float) -> dict[str, tuple[str, Change]]:
    """The value families, by name."""
    return {
        "zero-rows": ("rows of zeros, where eps is all there is", _zero_rows),
        "outlier": ("one element a thousand times the others, as large models have", _outlier),
        "small-values": ("a mean square of the size of eps", scaled("input", math.sqrt(eps))),
        "large-values": ("values whose squares overflow float16", scaled("input", 4096.0)),
        "cancelling": ("rows that a residual cancels", _cancelling),
        "non-finite": non_finite("input"),
    }


def twos(inputs: Sequence[TensorArg], eps: float) -> Invariant:
    """Rows of 2 and -2, with zeros for the residual: the mean square is 4."""
    names = [arg.name for arg in inputs]

    def make(sizes: Sizes, draw: Draw, _: torch.dtype) -> Drawn:
        drawn = ordinary(inputs, sizes, draw)
        drawn["input"] = draw.choice(tuple(drawn["input"].shape), (-2.0, 2.0))
        return drawn | ({"residual": drawn["input"] * 0} if "residual" in drawn else {})

    def outputs(input: Tensor, *rest: Tensor) -> dict[str, Tensor]:
        return {"output": input / math.sqrt(4 + eps) * (rest[0] if "weight" in names else 1)}

    return Invariant("twos", "rows of 2 and -2 are divided by sqrt(4 + eps)", make, outputs)
