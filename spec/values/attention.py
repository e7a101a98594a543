"""Values of attention: scores at the limits of exp, masks at their limits, and a token that has all the weight."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from spec.contract import Draw, Invariant, Sizes, TensorArg
from spec.rowwise import Change, Drawn, ordinary
from spec.scaled_dot_product import for_queries


def _sharp(drawn: Drawn, _draw: Draw, _dtype: torch.dtype) -> None:
    drawn["query"] *= 10.0


def _shifted(drawn: Drawn, draw: Draw, _dtype: torch.dtype) -> None:
    query, key = drawn["query"], drawn["key"]
    key[..., :1] = 40.0
    query[..., :1] = draw.choice((*query.shape[:3], 1), (8.0, -8.0)) * math.sqrt(key.shape[3])


def _equal(drawn: Drawn, _draw: Draw, _dtype: torch.dtype) -> None:
    drawn["key"][:] = drawn["key"][:, :, :1].clone()


def _later(drawn: Drawn, _draw: Draw, _dtype: torch.dtype) -> None:
    drawn["key"] *= torch.linspace(0.1, 3.0, drawn["key"].shape[2], dtype=torch.float64)[:, None]


#: Of query (batch, query heads, queries, width) and key (batch, heads, tokens, width).
SCORES: dict[str, tuple[str, Change]] = {
    "sharp": ("one weight of nearly 1 for each query", _sharp),
    "shifted": ("scores of some hundreds: exp overflows, or all of it underflows", _shifted),
    "equal-keys": ("all keys equal: all weights equal, and the gradients cancel", _equal),
    "later-larger": ("scores grow with the token: the largest one so far changes from tile to tile", _later),
}


def _nan(drawn: Drawn, _draw: Draw, _dtype: torch.dtype) -> None:
    drawn["query"][:1, :1, :1, :1] = math.nan


def _nowhere(drawn: Drawn, _draw: Draw, _dtype: torch.dtype) -> None:
    drawn["mask"][:, :, ::2] = 0


def _one(drawn: Drawn, _draw: Draw, _dtype: torch.dtype) -> None:
    drawn["mask"][:] = 0
    drawn["mask"][..., -1:] = 1


def changes(masked: bool, is_causal: bool) -> dict[str, tuple[str, Change]]:
    """The value families of a form, by name."""
    if masked:
        return SCORES | {
            "nowhere": ("every other query may look nowhere: output and gradients 0", _nowhere),
            "one-token": ("each query may look at the last token alone: its value", _one),
        }
    return SCORES | (
        {} if is_causal else {"non-finite": ("NaN in one query: the outputs of the others stay finite", _nan)}
    )


def dominant(inputs: Sequence[TensorArg]) -> Invariant:
    """Scores of 12800 for the first token and 0 for all others."""

    def make(sizes: Sizes, draw: Draw, _: torch.dtype) -> Drawn:
        drawn = ordinary(inputs, sizes, draw)
        drawn["query"][:], drawn["key"][:] = 0.0, 0.0
        drawn["query"][..., :1], drawn["key"][:, :, :1, :1] = 128.0, 100.0 * sizes["width"] ** 0.5
        if "mask" in drawn:
            drawn["mask"][:] = 1
        return drawn

    def outputs(query: Tensor, _key: Tensor, value: Tensor, *_: Tensor) -> dict[str, Tensor]:
        return {"output": for_queries(value[:, :, :1], query).expand(query.shape)}

    claim = "a first token with scores far above all others gives its value"
    return Invariant("dominant", claim, make, outputs, bitwise=True)
