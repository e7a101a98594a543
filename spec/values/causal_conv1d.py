"""Values of a causal convolution: filters of a single 1, filters that cancel, steps that grow."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from spec.contract import Draw, Invariant, Sizes, TensorArg
from spec.rowwise import Change, Drawn, non_finite, ordinary, scaled


def _taps(drawn: Drawn, draw: Draw) -> None:
    """Each filter has one 1, so each z is one element of the input, or 0 before its first one: nothing is rounded."""
    channels, width = drawn["weight"].shape
    drawn["weight"] = F.one_hot(draw.integers((channels,), 0, width), width).double()
    drawn.update({"bias": drawn["bias"] * 0} if "bias" in drawn else {})


def _chosen(*values: float) -> Change:
    def change(drawn: Drawn, draw: Draw, _dtype: torch.dtype) -> None:
        _taps(drawn, draw)
        drawn["input"] = draw.choice(tuple(drawn["input"].shape), values)

    return change


def _steady(drawn: Drawn, _draw: Draw, _dtype: torch.dtype) -> None:
    drawn["input"] = drawn["input"][..., :1].expand(drawn["input"].shape).clone()
    signs = torch.tensor([1.0, -1.0], dtype=torch.float64).repeat(drawn["weight"].shape[1])
    drawn["weight"] = drawn["weight"][:, :1] * signs[: drawn["weight"].shape[1]]


def _growing(drawn: Drawn, _draw: Draw, _dtype: torch.dtype) -> None:
    drawn["input"] *= torch.logspace(-1, 2, drawn["input"].shape[2], dtype=torch.float64)


_CHANGES: dict[str, tuple[str, Change]] = {
    "steady": ("a constant input whose filter cancels: what is left is the beginning", _steady),
    "growing": ("steps that grow a thousandfold: one that looks ahead sees more than all before it", _growing),
    "large-values": ("sums near the range of float16", scaled("input", 4096.0)),
    "non-finite": non_finite("input"),
}
_OF_SILU: dict[str, tuple[str, Change]] = {
    "turning": ("z about the place where the slope of silu changes its sign", _chosen(-1.288, -1.278, -1.268)),
    "saturated": ("z where silu is its argument, or nothing, and exp overflows", _chosen(-1000.0, -30.0, 0.0, 1000.0)),
}


def changes(silu: bool) -> dict[str, tuple[str, Change]]:
    """The value families of a form, by name."""
    return _CHANGES | (_OF_SILU if silu else {})


def delayed(inputs: Sequence[TensorArg]) -> Invariant:
    """Filters of a single 1, whose channels come later, and inputs that silu does not change."""

    def make(sizes: Sizes, draw: Draw, _: torch.dtype) -> Drawn:
        drawn = ordinary(inputs, sizes, draw)
        _taps(drawn, draw)
        return drawn | {"input": draw.choice(tuple(drawn["input"].shape), (256.0, 512.0))}

    def outputs(input: Tensor, weight: Tensor, *_: Tensor) -> dict[str, Tensor]:
        before = weight.shape[1] - 1 - weight.argmax(-1)  # how many steps each channel looks back
        steps = torch.arange(input.shape[2], device=input.device) - before.unsqueeze(-1)
        seen = input.gather(-1, steps.clamp(min=0).expand(input.shape))
        return {"output": torch.where(steps >= 0, seen, torch.zeros_like(seen))}

    return Invariant("delayed", "a filter with a single 1 delays its channel", make, outputs, bitwise=True)
