"""Causal convolution, wrong outputs: steps that are not before, filters of other channels, ends and tails."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from tests.zoo.honest.causal_conv1d import Filter, Optional
from tests.zoo.registry import fault

WRONG = r"output was .* but should be"


@fault("forward-parity", WRONG)
class SeesTheNextStep(Filter):
    """The padding is the same on both sides, so a step sees those after it."""

    def padded(self, x: Tensor, width: int) -> Tensor:
        return F.pad(x, (width - 1 - (width - 1) // 2, (width - 1) // 2))


@fault("forward-parity", WRONG)
class FilterTurnedRound(Filter):
    """The filter is turned round, as a convolution of mathematics has it."""

    def tap(self, w: Tensor, k: int) -> Tensor:
        return super().tap(w, w.shape[1] - 1 - k)


@fault("forward-parity", WRONG)
class FirstStepIsRepeated(Filter):
    """Before the first step there is not 0 but the first step again."""

    def padded(self, x: Tensor, width: int) -> Tensor:
        return torch.cat((x[..., :1].expand(*x.shape[:2], width - 1), x), -1)


@fault("sizes", r"width-[59]")
class FourTapsAtMost(Filter):
    """Of a filter of more than four steps the earliest are left out, as the unrolled loop of a kernel does."""

    def tap(self, w: Tensor, k: int) -> Tensor:
        return super().tap(w, k) * float(k >= w.shape[1] - 4)


@fault("sizes", r"length-\d+")
class ChunksForgetTheirPast(Filter):
    """Sequences are cut into chunks of 128 steps, and a chunk does not see the end of the one before it."""

    def z(self, x: Tensor, w: Tensor, bias: Optional) -> Tensor:
        return torch.cat([super(ChunksForgetTheirPast, self).z(part, w, bias) for part in x.split(128, -1)], -1)


@fault("sizes", r"channels-\d+")
class FilterOfTheTile(Filter):
    """Channels are read in tiles of 32, and the filters of the first tile are used for all."""

    def tap(self, w: Tensor, k: int) -> Tensor:
        return super().tap(w[torch.arange(w.shape[0], device=w.device) % 32], k)


@fault("forward-parity", r"causal_conv1d\[(silu|bias)\]")
class ForgetsTheBias(Filter):
    """The bias is left out."""

    def biased(self, total: Tensor, bias: Optional) -> Tensor:
        return total if bias is None else total + bias.to(total.dtype).unsqueeze(-1) * 0


@fault("forward-parity", r"causal_conv1d\[silu\]")
class BiasBehindTheActivation(Filter):
    """The bias is added to the output, behind the activation."""

    def __call__(self, input: Tensor, weight: Tensor, bias: Optional = None, activation: str | None = None) -> Tensor:
        self.check(input, weight, bias, activation)
        if bias is None or activation is None:
            return super().__call__(input, weight, bias, activation)
        return super().__call__(input, weight, None, activation) + bias.unsqueeze(-1)


@fault("forward-parity", r"causal_conv1d\[silu\].*values (saturated|large-values)")
class ActivationClamped(Filter):
    """z is limited to 88 before exp, so that the output is too."""

    def silu(self, z: Tensor) -> Tensor:
        return super().silu(z.clamp(-88.0, 88.0))


@fault("forward-parity", WRONG, dtype=torch.bfloat16)
class AddedUpInHalf(Filter):
    """Products and sums are rounded to the half type from step to step."""

    def wide(self, tensor: Tensor) -> Tensor:
        return tensor


@fault("forward-parity", r"values non-finite")
class SpreadsNaN(Filter):
    """The filter is as long as the sequence and mostly 0, as in a product with a matrix: 0 times NaN is NaN."""

    def z(self, x: Tensor, w: Tensor, bias: Optional) -> Tensor:
        return super().z(x, w, bias) + (x * 0).sum(-1, keepdim=True)


@fault("layouts", r"input (transposed|strided|padded|offset|expanded)")
class ChannelsLastByTheSizes(Filter):
    """An input that is not contiguous is read as if its memory had no gaps."""

    def seen(self, input: Tensor) -> Tensor:
        end = input.storage_offset() + input.numel()
        if input.device.type != "cpu" or input.untyped_storage().nbytes() // input.element_size() < end:
            return super().seen(input)
        return super().seen(input.as_strided(input.shape, torch.empty(input.shape, device="meta").stride()))
