"""Attention over a packed batch written out in steps: the honest attention under a mask of the sequences.

It is right as it stands, and wrong in one way when one method is overridden.
"""

from __future__ import annotations

import torch
from torch import Tensor

from backends._python.attention_varlen import check_attention_varlen_arguments
from tests.zoo.honest.attention import Attention


class Varlen(Attention):
    """The honest attention of all tokens; `may_see` is the mask."""

    def __call__(  # type: ignore[override]
        self, query: Tensor, key: Tensor, value: Tensor, cu_seqlens: Tensor, is_causal: bool = False
    ) -> Tensor:
        check_attention_varlen_arguments(query, key, value, cu_seqlens)
        offsets = self.offsets(cu_seqlens)
        may = self.may_see(self.sequence_of(offsets, query.shape[0]), offsets, is_causal)
        key, value = self.in_backward(key, offsets), self.in_backward(value, offsets)
        q, k, v = (tensor.transpose(0, 1).unsqueeze(0) for tensor in (query, key, value))
        output: Tensor = super().__call__(q, k, v, may.unsqueeze(0).unsqueeze(0)).squeeze(0).transpose(0, 1)
        return self.finished(output, offsets)

    def offsets(self, cu_seqlens: Tensor) -> Tensor:
        return cu_seqlens

    def sequence_of(self, offsets: Tensor, tokens: int) -> Tensor:
        """(tokens,): the number of the sequence of each token."""
        place = torch.arange(tokens, device=offsets.device)
        return (place.unsqueeze(-1) >= offsets[1:]).sum(-1)

    def may_see(self, sequence: Tensor, offsets: Tensor, is_causal: bool) -> Tensor:
        """(tokens, tokens): whether the token of a row sees that of a column."""
        del offsets
        may = sequence.unsqueeze(-1) == sequence
        return may.tril() if is_causal else may

    def in_backward(self, tensor: Tensor, offsets: Tensor) -> Tensor:
        """A key or value as backward finds it."""
        del offsets
        return tensor

    def finished(self, output: Tensor, offsets: Tensor) -> Tensor:
        del offsets
        return output
