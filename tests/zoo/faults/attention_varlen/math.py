"""Attention over a packed batch with wrong values: borders of sequences, empty ones, causality, heads."""

from __future__ import annotations

import torch
from torch import Tensor

from tests.zoo.honest.attention_varlen import Varlen
from tests.zoo.registry import fault

WRONG = r"output was .* but should be"


def _sequences(offsets: Tensor) -> int:
    return offsets.shape[0] - 1


@fault("forward-parity", WRONG)
class SeesAllSequences(Varlen):
    """The offsets are not used: a token sees those of all sequences."""

    def may_see(self, sequence: Tensor, offsets: Tensor, is_causal: bool) -> Tensor:
        return super().may_see(torch.zeros_like(sequence), offsets, is_causal)


@fault("forward-parity", WRONG)
class SeesOneTokenOfTheNext(Varlen):
    """The end of a sequence is taken to be within it: a token sees the first one of the next sequence too."""

    def may_see(self, sequence: Tensor, offsets: Tensor, is_causal: bool) -> Tensor:
        place = torch.arange(len(sequence), device=sequence.device)
        ends = offsets[1:][sequence.clamp(max=_sequences(offsets) - 1)]
        return super().may_see(sequence, offsets, is_causal) | (ends.unsqueeze(-1) == place)


@fault("forward-parity", WRONG)
class BeginsOneTooLate(Varlen):
    """The first token of each sequence is taken to be the last one of the sequence before it."""

    def sequence_of(self, offsets: Tensor, tokens: int) -> Tensor:
        return super().sequence_of(offsets + 1, tokens)


@fault("forward-parity", WRONG)
class DropsTheLastSequence(Varlen):
    """The loop over the sequences ends one too early: the output of the last one is 0."""

    def finished(self, output: Tensor, offsets: Tensor) -> Tensor:
        place = torch.arange(len(output), device=output.device)
        return torch.where((place < offsets[-2])[:, None, None], output, torch.zeros_like(output))


@fault("forward-parity", WRONG)
class StopsAtAnEmptySequence(Varlen):
    """An empty sequence is taken for the end of the batch: the outputs behind it are 0."""

    def finished(self, output: Tensor, offsets: Tensor) -> Tensor:
        place, ends = torch.arange(len(output), device=output.device), offsets[1:]
        empty = torch.where(offsets[:-1] == ends, ends, torch.full_like(ends, len(output)))
        return torch.where((place < empty.amin())[:, None, None], output, torch.zeros_like(output))


@fault("forward-parity", WRONG)
class AnEmptySequenceTakesAToken(Varlen):
    """Each sequence has one token at least: an empty one takes the first token of the next one."""

    def offsets(self, cu_seqlens: Tensor) -> Tensor:
        least = torch.arange(len(cu_seqlens), device=cu_seqlens.device, dtype=cu_seqlens.dtype)
        return torch.maximum(cu_seqlens, least)


@fault("forward-parity", WRONG)
class SequencesOfOneLength(Varlen):
    """All sequences are taken to have the mean length, as in a padded batch."""

    def offsets(self, cu_seqlens: Tensor) -> Tensor:
        count = max(_sequences(cu_seqlens), 1)
        return torch.arange(count + 1, device=cu_seqlens.device) * cu_seqlens[-1] // count


@fault("forward-parity", r"causal|grouped")
class CausalFromTheBeginningOfTheBatch(Varlen):
    """With is_causal, the place of a query is counted in its sequence, and that of a token in the whole batch."""

    def may_see(self, sequence: Tensor, offsets: Tensor, is_causal: bool) -> Tensor:
        may = super().may_see(sequence, offsets, False)
        if not is_causal:
            return may
        place = torch.arange(len(sequence), device=sequence.device)
        begins = offsets[sequence]
        return may & ((place - begins).unsqueeze(-1) >= place)


@fault("forward-parity", r"causal|grouped")
class CausalByLength(Varlen):
    """With is_causal, a sequence that is not the first sees one token ahead."""

    def may_see(self, sequence: Tensor, offsets: Tensor, is_causal: bool) -> Tensor:
        may = super().may_see(sequence, offsets, False)
        ahead = torch.ones_like(may).tril(1) & (sequence > sequence[:1]).unsqueeze(-1)
        return may & (ahead | torch.ones_like(may).tril()) if is_causal else may


@fault("forward-parity", r"grouped")
class HeadsInTurn(Varlen):
    """Query head h uses key head h modulo their number: heads that share keys are not neighbours."""

    def for_queries(self, shared: Tensor, heads: int) -> Tensor:
        return shared.repeat(1, heads // shared.shape[1], 1, 1)


@fault("sizes", r"tokens-289")
class OffsetsOfEightBits(Varlen):
    """Offsets are kept in eight bits: those above 255 wrap around."""

    def offsets(self, cu_seqlens: Tensor) -> Tensor:
        return cu_seqlens % 256


@fault("sizes", r"sequences-(33|129)")
class AtMost32Sequences(Varlen):
    """The sequences behind the first 32 are one: a block of threads has one for each."""

    def sequence_of(self, offsets: Tensor, tokens: int) -> Tensor:
        return super().sequence_of(offsets, tokens).clamp(max=31)


@fault("layouts", r"cu_seqlens|laid out contiguously")
class ReadsOffsetsAsContiguous(Varlen):
    """The offsets are read as if they lay one after another in memory."""

    def offsets(self, cu_seqlens: Tensor) -> Tensor:
        return cu_seqlens.as_strided(cu_seqlens.shape, (1,))
