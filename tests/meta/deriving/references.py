"""References that are right, each with a call that it takes; and functions that no reference should be."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor


def rms_norm(x: Tensor, weight: Tensor, eps: float = 1e-6) -> Tensor:
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * weight


def rms_example() -> tuple[Tensor, ...]:
    return torch.randn(6, 64), torch.randn(64)


def rms_in_float32(x: Tensor, weight: Tensor, eps: float = 1e-6) -> Tensor:
    """As models write it: statistics in float32, the product with the weight in the dtype."""
    wide = x.to(torch.float32)
    wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + eps)
    return weight * wide.to(x.dtype)


def cross_entropy(logits: Tensor, labels: Tensor, label_smoothing: float = 0.0) -> Tensor:
    return F.cross_entropy(logits, labels, reduction="none", label_smoothing=label_smoothing)


def cross_entropy_example() -> dict[str, object]:
    return {"logits": torch.randn(6, 10), "labels": torch.randint(0, 10, (6,)), "label_smoothing": 0.1}


def attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
    return torch.softmax(torch.where(mask, scores, -1e4), -1) @ v


def attention_example() -> tuple[Tensor, ...]:
    return torch.randn(6, 5, 8), torch.randn(6, 7, 8), torch.randn(6, 7, 8), torch.ones(5, 7, dtype=torch.bool)


def two_outputs(x: Tensor, scale: Tensor) -> tuple[Tensor, Tensor]:
    y = x * scale
    return y, torch.cat([y, y.sum(-1, keepdim=True)], -1)


def two_outputs_example() -> tuple[Tensor, ...]:
    return torch.randn(5, 9), torch.randn(9)


def mixes_rows(x: Tensor) -> Tensor:
    return x - x.mean(0)


def mixes_rows_example() -> tuple[Tensor, ...]:
    return (torch.randn(5, 9),)


def logarithms(x: Tensor) -> Tensor:
    return x.log().sum(-1)


def logarithms_example() -> tuple[Tensor, ...]:
    return (torch.linspace(0.5, 1.5, 48).reshape(6, 8),)


def scaled_along(
    x: Tensor, dims: tuple[int, ...], dtype: torch.dtype, weight: Tensor, *, scale: float = math.inf
) -> Tensor:
    wide = x.to(dtype)
    return (wide * torch.rsqrt(wide.pow(2).mean(dims, keepdim=True) + 1 / scale + 1e-6)).to(x.dtype) * weight


def scaled_along_example() -> dict[str, object]:
    return {
        "x": torch.randn(6, 64),
        "dims": (-1,),
        "dtype": torch.float32,
        "weight": torch.randn(64),
        "scale": math.inf,
    }


# What is refused


def random(x: Tensor) -> Tensor:
    return x * torch.rand_like(x)


def in_place(x: Tensor) -> Tensor:
    return x.mul_(2)


def not_differentiable(x: Tensor) -> Tensor:
    return x.detach() * 2


def half(x: Tensor) -> Tensor:
    return x.half() * 2


class _Wrong(torch.autograd.Function):
    @staticmethod
    def forward(x: Tensor) -> Tensor:
        return x * x

    @staticmethod
    def setup_context(ctx: torch.autograd.function.FunctionCtx, inputs: tuple[Tensor], output: Tensor) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: torch.autograd.function.FunctionCtx, g: Tensor) -> Tensor:  # type: ignore[override]
        (x,) = ctx.saved_tensors  # type: ignore[attr-defined]
        return g * x


def wrong_gradient(x: Tensor) -> Tensor:
    return _Wrong.apply(x)  # type: ignore[no-any-return, no-untyped-call]


def inverts(x: Tensor) -> Tensor:
    return torch.linalg.inv(torch.eye(3, dtype=x.dtype) + x.mean()) @ x[:3]


def raises_for_others(x: Tensor) -> Tensor:
    if x.shape[0] == 3:
        raise ValueError("not three")
    return x * 2


def a_dict(x: Tensor) -> dict[str, Tensor]:
    return {"y": x}


def complex_result(x: Tensor) -> Tensor:
    return torch.fft.fft(x)


def reads_a_value(x: Tensor) -> Tensor:
    return x * x.mean().item()


def has_no_derivative(x: Tensor) -> Tensor:
    return torch.special.zeta(x.abs() + 2, torch.ones_like(x) + x * x)


def any_number(*tensors: Tensor) -> Tensor:
    return tensors[0]


def raises(x: Tensor) -> Tensor:
    raise ValueError("no")
