"""Values of attention over a packed batch: those of attention, and sequences of no and of one token."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from spec.contract import Draw, Invariant, Sizes, TensorArg
from spec.packing import in_batch, sequence_of
from spec.rowwise import Change, Drawn, ordinary
from spec.values.attention import SCORES


def _on_heads(change: Change) -> Change:
    """A change of the tensors of `spec.attention`, through views."""

    def changed(drawn: Drawn, draw: Draw, dtype: torch.dtype) -> None:
        change({name: in_batch(drawn[name]) for name in ("query", "key", "value")}, draw, dtype)

    return changed


def _last_only(drawn: Drawn, _draw: Draw, _dtype: torch.dtype) -> None:
    drawn["cu_seqlens"][:-1] = 0


def _first_only(drawn: Drawn, _draw: Draw, _dtype: torch.dtype) -> None:
    drawn["cu_seqlens"][1:] = len(drawn["query"])


def _single_tokens(drawn: Drawn, _draw: Draw, _dtype: torch.dtype) -> None:
    offsets = drawn["cu_seqlens"]
    offsets[:-1] = torch.arange(len(offsets) - 1).clamp(max=len(drawn["query"]))


def _every_other(drawn: Drawn, _draw: Draw, _dtype: torch.dtype) -> None:
    offsets = drawn["cu_seqlens"]
    inner = offsets[1:-1]
    inner[1::2] = inner[: len(inner) // 2 * 2 : 2]


CHANGES: dict[str, tuple[str, Change]] = {
    **{name: (purpose, _on_heads(change)) for name, (purpose, change) in SCORES.items()},
    "last-only": ("all tokens in the last sequence, behind empty ones", _last_only),
    "first-only": ("all tokens in the first sequence, before empty ones", _first_only),
    "single-tokens": ("sequences of one token, and a last one of the rest", _single_tokens),
    "every-other": ("every other sequence empty", _every_other),
}


def dominant(inputs: Sequence[TensorArg]) -> Invariant:
    """Scores of 12800 for the first token of each sequence and 0 for all others."""

    def make(sizes: Sizes, draw: Draw, _: torch.dtype) -> Drawn:
        drawn = ordinary(inputs, sizes, draw)
        drawn["query"][:], drawn["key"][:] = 0.0, 0.0
        drawn["query"][..., 0] = 128.0
        first = drawn["cu_seqlens"][:-1]
        drawn["key"][first[first < sizes["tokens"]], :, 0] = 100.0 * sizes["width"] ** 0.5
        return drawn

    def outputs(query: Tensor, _key: Tensor, value: Tensor, cu_seqlens: Tensor) -> dict[str, Tensor]:
        first = cu_seqlens[sequence_of(cu_seqlens, len(query))]
        return {"output": value[first].repeat_interleave(query.shape[1] // max(value.shape[1], 1), 1)}

    claim = "a first token of each sequence with scores far above all others gives its value"
    return Invariant("dominant", claim, make, outputs, bitwise=True)
