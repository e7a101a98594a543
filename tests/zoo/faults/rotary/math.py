"""Rotary embedding, wrong outputs: other angles, other pairs, elements that are left out."""

from __future__ import annotations

import torch
from torch import Tensor

from tests.zoo.honest.rotary import Pair, Rotation
from tests.zoo.registry import fault

WRONG = r"output was .* but should be"


@fault("forward-parity", WRONG)
class TurnedTheOtherWay(Rotation):
    """The sine has the other sign, in forward and in backward."""

    def turned(self, pair: Pair, cos: Tensor, sin: Tensor) -> Pair:
        return super().turned(pair, cos, -sin)


@fault("forward-parity", r"rotary\[interleaved\]")
class HalvesWhateverIsAsked(Rotation):
    """Pairs are always an element of each half."""

    def interleaved(self, interleaved: bool) -> bool:
        return False


@fault("forward-parity", WRONG)
class SecondReadsTheNewFirst(Rotation):
    """x2 is turned with x1 as it is after the turn, as where both are written in place."""

    def turned(self, pair: Pair, cos: Tensor, sin: Tensor) -> Pair:
        x1, x2 = pair
        x1 = x1 * cos - x2 * sin
        return x1, x2 * cos + x1 * sin


@fault("forward-parity", WRONG)
class FirstTokenNotTurned(Rotation):
    """The first token is copied, since the angle of position 0 is 0; the table may begin elsewhere."""

    def turned(self, pair: Pair, cos: Tensor, sin: Tensor) -> Pair:
        first = torch.arange(cos.shape[0], device=cos.device).view(-1, 1, 1) == 0
        return tuple(torch.where(first, x, y) for x, y in zip(pair, super().turned(pair, cos, sin), strict=True))


@fault("forward-parity", WRONG)
class SineFromCosine(Rotation):
    """The sine is computed from the cosine, without its sign."""

    def turned(self, pair: Pair, cos: Tensor, sin: Tensor) -> Pair:
        return super().turned(pair, cos, (1 - cos * cos).clamp(min=0).sqrt())


@fault("forward-parity", WRONG)
class AnglesInHalf(Rotation):
    """Cosine and sine are rounded to bfloat16, in float32 too."""

    def of_heads(self, table: Tensor, input: Tensor) -> Tensor:
        return super().of_heads(table.to(torch.bfloat16).to(table.dtype), input)


@fault("sizes", r"square")
class AnglesOfTheHead(Rotation):
    """Where there are as many heads as tokens, the angle is that of the head."""

    def of_heads(self, table: Tensor, input: Tensor) -> Tensor:
        return table.unsqueeze(0) if table.shape[0] == input.shape[2] else super().of_heads(table, input)


@fault("sizes", r"half-\d+|one-pair")
class LastOddPairNotTurned(Rotation):
    """Pairs are turned two at a time: of an odd number the last one is copied."""

    def turned(self, pair: Pair, cos: Tensor, sin: Tensor) -> Pair:
        half = cos.shape[-1]
        seen = torch.arange(half, device=cos.device) < half // 2 * 2
        return tuple(torch.where(seen, y, x) for x, y in zip(pair, super().turned(pair, cos, sin), strict=True))


@fault("no-side-effects", r"changed \d+ elements of input in place")
class TurnedInPlace(Rotation):
    """The input is turned in place, and a copy is returned."""

    def store(self, output: Tensor, input: Tensor) -> Tensor:
        made = super().store(output, input)
        with torch.no_grad():
            input.data.copy_(made)
        return made
