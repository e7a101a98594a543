"""Values of GroupNorm: groups at the limits of the variance, and groups whose mean and variance are known."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from spec.channels import grouped, per_channel
from spec.contract import Draw, Invariant, Sizes, TensorArg
from spec.rowwise import Change, Drawn, ordinary, scaled


def changes(num_groups: int, eps: float) -> dict[str, tuple[str, Change]]:
    """The value families, by name."""

    def on_groups(change: Callable[[Tensor, torch.dtype], Tensor]) -> Change:
        def changed(drawn: Drawn, _draw: Draw, dtype: torch.dtype) -> None:
            drawn["input"] = change(grouped(drawn["input"], num_groups), dtype).view(drawn["input"].shape)

        return changed

    def large_mean(groups: Tensor, dtype: torch.dtype) -> Tensor:
        # In turn 1 above and 1 below the mean, so that no group is nearly constant by chance: see `spec.layer_norm`.
        sides = 1.0 - 2.0 * (torch.arange(groups.shape[-1]) % 2)
        return groups / 4 + sides + 4 / math.sqrt(torch.finfo(dtype).eps)

    def constant(groups: Tensor, _dtype: torch.dtype) -> Tensor:
        # Multiples of 1/16, whose mean is exact.
        groups[:, ::2] = (groups[:, ::2, :1] * 16).round() / 16
        return groups

    def steps(groups: Tensor, _dtype: torch.dtype) -> Tensor:
        return groups + 8.0 * torch.arange(num_groups).unsqueeze(-1)

    def non_finite(groups: Tensor, _dtype: torch.dtype) -> Tensor:
        for sample, value in zip(range(len(groups)), (math.nan, math.inf, -math.inf), strict=False):
            groups[sample, sample % num_groups, sample % groups.shape[-1]] = value
        return groups

    return {
        "large-mean": ("a mean far above the standard deviation, where E[x^2] - mean^2 cancels", on_groups(large_mean)),
        "constant-groups": ("groups of variance 0, where eps is all there is", on_groups(constant)),
        "steps": ("a mean that grows from group to group", on_groups(steps)),
        "small-variance": ("a variance of the size of eps", scaled("input", math.sqrt(eps))),
        "large-values": ("values whose squares overflow float16", scaled("input", 4096.0)),
        "non-finite": ("inf and NaN in three groups, which must stay in their groups", on_groups(non_finite)),
    }


def invariants(inputs: Sequence[TensorArg], num_groups: int, eps: float) -> tuple[Invariant, ...]:
    """Groups of 3 and 1, and a weight of 0 where there is a bias."""
    names = [arg.name for arg in inputs[1:]]

    def two_values(sizes: Sizes, draw: Draw, _: torch.dtype) -> Drawn:
        drawn = ordinary(inputs, sizes, draw)
        groups = grouped(drawn["input"], num_groups)
        groups[:] = 2.0
        groups[..., 0 : groups.shape[-1] // 2 * 2 : 2] = 3.0
        groups[..., 1::2] = 1.0
        return drawn

    def plus_and_minus(input: Tensor, *affine: Tensor) -> dict[str, Tensor]:
        count = grouped(input, num_groups).shape[-1]
        share = (count // 2 * 2) / max(count, 1)  # in a group of odd length, one element is the mean
        output = (input - 2.0) / math.sqrt(share + eps)
        named = {each: per_channel(tensor, input) for each, tensor in zip(names, affine, strict=True)}
        return {"output": output * named.get("weight", torch.ones(())) + named.get("bias", torch.zeros(()))}

    def zero_weight(sizes: Sizes, draw: Draw, _: torch.dtype) -> Drawn:
        drawn = ordinary(inputs, sizes, draw)
        return drawn | {"weight": torch.zeros_like(drawn["weight"])}

    def bias_alone(input: Tensor, _weight: Tensor, bias: Tensor) -> dict[str, Tensor]:
        return {"output": per_channel(bias, input).expand_as(input)}

    claim = "groups of 3 and 1 in turn are normalised to +-1/sqrt(1 + eps)"
    found = (Invariant("two-values", claim, two_values, plus_and_minus),)
    if "bias" not in names:
        return found
    return *found, Invariant("zero-weight", "a weight of 0 leaves the bias", zero_weight, bias_alone, bitwise=True)
