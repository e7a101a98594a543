"""Values of rotary embeddings: the angles of models and of quarter turns, and pairs that cancel."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from spec.contract import Draw, Invariant, Sizes, TensorArg
from spec.rowwise import Change, Drawn, non_finite, ordinary, scaled


def _angles(drawn: Drawn, angle: Tensor) -> None:
    drawn["cos"], drawn["sin"] = torch.cos(angle), torch.sin(angle)


def _of_positions(drawn: Drawn, _draw: Draw, _dtype: torch.dtype) -> None:
    tokens, half = drawn["cos"].shape
    frequencies = 10000.0 ** -(torch.arange(half, dtype=torch.float64) / max(half, 1))
    _angles(drawn, torch.arange(tokens, dtype=torch.float64).unsqueeze(-1) * frequencies)


def _quarter(drawn: Drawn, draw: Draw, _dtype: torch.dtype) -> None:
    shape = tuple(drawn["cos"].shape)
    drawn["cos"] = draw.choice(shape, (0.0, 1.0, -1.0))
    drawn["sin"] = (1 - drawn["cos"].abs()) * draw.choice(shape, (1.0, -1.0))


def _cancelling(drawn: Drawn, _draw: Draw, _dtype: torch.dtype) -> None:
    half = drawn["cos"].shape[1]
    drawn["input"][..., half:] = drawn["input"][..., :half]
    _angles(drawn, torch.full(tuple(drawn["cos"].shape), math.pi / 4, dtype=torch.float64))


CHANGES: dict[str, tuple[str, Change]] = {
    "positions": ("the angles of a model: position times 10000**(-i/half)", _of_positions),
    "quarters": ("angles of 0, 90, 180 and 270 degrees, so that elements are exchanged", _quarter),
    "cancelling": ("equal halves turned by 45 degrees: the first output cancels", _cancelling),
    "large-values": ("products near the range of float16", scaled("input", 8192.0)),
    "non-finite": non_finite("input"),
}


def quarter_turn(inputs: Sequence[TensorArg], exchanged: Callable[..., dict[str, Tensor]]) -> Invariant:
    """Angles of 90 degrees; `exchanged` returns the output."""

    def make(sizes: Sizes, draw: Draw, _: torch.dtype) -> Drawn:
        drawn = ordinary(inputs, sizes, draw)
        return drawn | {"cos": torch.zeros_like(drawn["cos"]), "sin": torch.ones_like(drawn["sin"])}

    return Invariant("quarter-turn", "by 90 degrees (x1, x2) becomes (-x2, x1)", make, exchanged)
