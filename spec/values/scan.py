"""Values of a scan: gates that keep, forget, grow or reset, and states that are known."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from spec.contract import Draw, Invariant, Sizes, TensorArg
from spec.rowwise import Change, Drawn, as_rows, ordinary, scaled


def _gates(low: float, high: float) -> Change:
    def change(drawn: Drawn, draw: Draw, _dtype: torch.dtype) -> None:
        drawn["gates"] = draw.uniform(tuple(drawn["gates"].shape), low, high)

    return change


def _resets(drawn: Drawn, draw: Draw, _dtype: torch.dtype) -> None:
    drawn["gates"] *= draw.choice(tuple(drawn["gates"].shape), (0.0, 1.0, 1.0))


def _cancelling(drawn: Drawn, draw: Draw, _dtype: torch.dtype) -> None:
    drawn["gates"].fill_(1.0)
    tokens = drawn["tokens"]
    tokens[..., 1::2] = -tokens[..., : 2 * (tokens.shape[-1] // 2) : 2]
    tokens += 2.0**-6 * draw.normal(tuple(tokens.shape))


def _nan(drawn: Drawn, _draw: Draw, _dtype: torch.dtype) -> None:
    rows = as_rows(drawn["tokens"])
    for row in range(min(len(rows), 3)):
        rows[row, row % rows.shape[1] :][:1] = math.nan


CHANGES: dict[str, tuple[str, Change]] = {
    "long-memory": ("gates of nearly 1: a state has hundreds of terms", _gates(0.98, 1.0)),
    "both-signs": ("gates between -1 and 1, whose states change their sign", _gates(-1.0, 1.0)),
    "growing": ("gates of 1 to 1.01, so that the state grows", _gates(1.0, 1.01)),
    "forgetting": ("gates of 0.001, whose products underflow", _gates(0.0005, 0.0015)),
    "resets": ("gates of exactly 0 in a third of the steps, where a new sequence begins", _resets),
    "cancelling": (
        "gates of 1 and tokens that take back the one before: sums far smaller than their terms",
        _cancelling,
    ),
    "large-values": ("states near the range of float16", scaled("tokens", 4096.0)),
    "non-finite": ("NaN in three rows: it must not reach the steps before it, nor other rows", _nan),
}


def invariants(inputs: Sequence[TensorArg]) -> tuple[Invariant, ...]:
    """Gates of 1, which count, and of 0, which remember nothing."""

    def counting(sizes: Sizes, draw: Draw, _: torch.dtype) -> Drawn:
        drawn = {arg.name: draw.choice(arg.shape_for(sizes), (-1.0, 1.0)) for arg in inputs}
        return drawn | {"gates": torch.ones_like(drawn["gates"])}

    def counted(_gates: Tensor, tokens: Tensor, *initial: Tensor) -> dict[str, Tensor]:
        return {"states": tokens.cumsum(-1) + (initial[0].unsqueeze(-1) if initial else 0)}

    def forgetting(sizes: Sizes, draw: Draw, _: torch.dtype) -> Drawn:
        drawn = ordinary(inputs, sizes, draw)
        return drawn | {"gates": torch.zeros_like(drawn["gates"])}

    def forgotten(_gates: Tensor, tokens: Tensor, *_: Tensor) -> dict[str, Tensor]:
        return {"states": tokens}

    return (
        Invariant("counting", "gates of 1 add up tokens of 1 and -1", counting, counted, bitwise=True),
        Invariant("no-memory", "gates of 0 leave the tokens as they are", forgetting, forgotten, bitwise=True),
    )
