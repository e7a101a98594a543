"""The model of rounding knows the operations of references: another way to compute each is within its allowance."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from harness.judging.compare import compare
from spec.contract import Draw
from spec.derived import Reference
from spec.envelope import FEW_INDEPENDENT, envelopes

Function = Callable[..., Any]


@dataclass(frozen=True)
class Pair:
    """Two ways to compute one thing, and the shapes of their arguments."""

    name: str
    reference: Function
    other: Function
    shapes: tuple[tuple[int, ...], ...]


def _shifted_sum(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    """A convolution of a padded image, one tap after another."""
    x = F.pad(x, (1, 1, 1, 1))
    height, width = x.shape[2] - 2, x.shape[3] - 2
    taps = [
        torch.einsum("nchw,oc->nohw", x[:, :, i : i + height, j : j + width], w[:, :, i, j])
        for i in range(3)
        for j in range(3)
    ]
    return torch.stack(taps).sum(0) + b[:, None, None]


def _by_columns(x: Tensor, w: Tensor) -> Tensor:
    columns = F.unfold(x, 3, stride=2)
    return (w.flatten(1) @ columns).unflatten(-1, ((x.shape[2] - 1) // 2, (x.shape[3] - 1) // 2))


def _depthwise(x: Tensor, w: Tensor) -> Tensor:
    return (x.unfold(-1, 4, 1) * w.squeeze(1)[:, None]).sum(-1)


def _windows(x: Tensor) -> Tensor:
    n, c, h, w = x.shape
    return x.view(n, c, h // 2, 2, w // 2, 2)


def _doubled(x: Tensor, dim: int) -> Tensor:
    """Twice as long: three quarters of each element, and a quarter of a neighbour."""
    n = x.shape[dim]
    places = torch.arange(n)
    before, after = x.index_select(dim, (places - 1).clamp(min=0)), x.index_select(dim, (places + 1).clamp(max=n - 1))
    return torch.stack((0.25 * before + 0.75 * x, 0.75 * x + 0.25 * after), dim + 1).flatten(dim, dim + 1)


def _twice_as_large(x: Tensor) -> Tensor:
    return _doubled(_doubled(x, 3), 2)


def _hat(n: int, count: int) -> Tensor:
    """Weights of n elements in each of `count` results from the first element to the last one."""
    at = torch.arange(count) * ((n - 1) / (count - 1))
    return (1 - (at - torch.arange(n)[:, None]).abs()).clamp(min=0.0)


def _shuffled(x: Tensor) -> Tensor:
    n, c, h, w = x.shape
    return x.view(n, c // 4, 2, 2, h, w).permute(0, 1, 4, 2, 5, 3).reshape(n, c // 4, 2 * h, 2 * w)


def _running_product(x: Tensor) -> Tensor:
    found = [x[:, 0]]
    for column in x.unbind(1)[1:]:
        found.append(found[-1] * column)
    return torch.stack(found, 1)


def _turned(x: Tensor, angles: Tensor) -> Tensor:
    """Pairs as complex numbers, turned."""
    pairs = torch.view_as_complex(x.float().unflatten(-1, (-1, 2)).contiguous())
    turns = torch.polar(torch.ones_like(angles.float()), angles.float())
    return torch.view_as_real(pairs * turns).flatten(-2).type_as(x)


def _turned_in_reals(x: Tensor, angles: Tensor) -> Tensor:
    one, two, cos, sin = x[..., ::2], x[..., 1::2], angles.cos(), angles.sin()
    return torch.stack((one * cos - two * sin, one * sin + two * cos), -1).flatten(-2)


def _complex_product(x: Tensor, y: Tensor) -> Tensor:
    return torch.view_as_real(torch.view_as_complex(x) @ torch.view_as_complex(y))


def _real_products(x: Tensor, y: Tensor) -> Tensor:
    (a, b), (c, d) = x.unbind(-1), y.unbind(-1)
    return torch.stack((a @ c - b @ d, a @ d + b @ c), -1)


def _normalised(x: Tensor, dims: tuple[int, ...]) -> Tensor:
    deviation = x - x.mean(dims, keepdim=True)
    return deviation * torch.rsqrt(deviation.square().mean(dims, keepdim=True) + 1e-5)


def _of_groups(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    return _normalised(x.unflatten(1, (2, -1)), (2, 3)).flatten(1, 2) * w[:, None] + b[:, None]


def _of_batch(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    return _normalised(x, (0, 2, 3)) * w[:, None, None] + b[:, None, None]


#: Seven indices of a table of five rows in bags of 3, 0 and 4 indices; 2 is the index of padding.
_INDICES, _OFFSETS = torch.tensor([0, 2, 4, 3, 3, 1, 2]), torch.tensor([0, 3, 3])
#: Where the rows of seven go among three.
_ROWS = torch.tensor([0, 2, 1, 0, 0, 2, 1])
_BAGS = ([0, 2, 4], [], [3, 3, 1, 2])


def _bags(weight: Tensor, **options: Any) -> Tensor:
    return F.embedding_bag(_INDICES, weight, _OFFSETS, **options)


def _bags_by_rows(weight: Tensor, padding: int | None = None, mean: bool = False) -> Tensor:
    used = [[row for row in bag if row != padding] for bag in _BAGS]
    sums = [torch.zeros(weight.shape[1]) + sum(weight[row] for row in reversed(bag)) for bag in used]
    return torch.stack([y / max(len(bag), 1) if mean else y for y, bag in zip(sums, used, strict=True)])


def _largest_of_bags(weight: Tensor) -> Tensor:
    maxima = [weight[bag].amax(0) if bag else torch.zeros(weight.shape[1]) for bag in _BAGS]
    return torch.stack(maxima)


def _weighted_bags(weight: Tensor, factors: Tensor) -> Tensor:
    return _bags(weight, per_sample_weights=factors, mode="sum")


def _weighted_bags_by_rows(weight: Tensor, factors: Tensor) -> Tensor:
    rows = weight[_INDICES] * factors[:, None]
    return torch.stack((rows[:3].sum(0), rows[3:3].sum(0), rows[3:].sum(0)))


def _convolved(x: Tensor, w: Tensor) -> Tensor:
    return torch.fft.irfft(torch.fft.rfft(x) * torch.fft.rfft(w), n=x.shape[-1])


def _convolved_by_sums(x: Tensor, w: Tensor) -> Tensor:
    n = x.shape[-1]
    return x @ w[(torch.arange(n) - torch.arange(n)[:, None]) % n]


def _spectrum(x: Tensor) -> Tensor:
    return torch.view_as_real(torch.fft.fft2(x, norm="ortho"))


def _spectrum_by_steps(x: Tensor) -> Tensor:
    return torch.view_as_real(torch.fft.fft(torch.fft.fft(x, dim=0), dim=1) / (x.numel() ** 0.5))


_IMAGE = (2, 3, 6, 8)
PAIRS = (
    Pair("conv2d", lambda x, w, b: F.conv2d(x, w, b, padding=1), _shifted_sum, (_IMAGE, (4, 3, 3, 3), (4,))),
    Pair("conv2d-stride", lambda x, w: F.conv2d(x, w, stride=2), _by_columns, (_IMAGE, (4, 3, 3, 3))),
    Pair("conv1d-groups", lambda x, w: F.conv1d(x, w, groups=5), _depthwise, ((2, 5, 9), (5, 1, 4))),
    Pair("max_pool2d", lambda x: F.max_pool2d(x, 2), lambda x: _windows(x).amax((3, 5)), (_IMAGE,)),
    Pair("avg_pool2d", lambda x: F.avg_pool2d(x, 2), lambda x: _windows(x).mean((3, 5)), (_IMAGE,)),
    Pair(
        "adaptive_avg_pool2d", lambda x: F.adaptive_avg_pool2d(x, (3, 4)), lambda x: _windows(x).mean((3, 5)), (_IMAGE,)
    ),
    Pair(
        "reflection_pad",
        lambda x: F.pad(x, (2, 1), mode="reflect"),
        lambda x: torch.cat((x[..., [2, 1]], x, x[..., [-2]]), -1),
        ((3, 4, 7),),
    ),
    Pair(
        "upsample_nearest",
        lambda x: F.interpolate(x, scale_factor=2),
        lambda x: x.repeat_interleave(2, 2).repeat_interleave(2, 3),
        (_IMAGE,),
    ),
    Pair("upsample_bilinear", lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"), _twice_as_large, (_IMAGE,)),
    Pair(
        "upsample_linear",
        lambda x: F.interpolate(x, size=7, mode="linear", align_corners=True),
        lambda x: x @ _hat(5, 7),
        ((2, 3, 5),),
    ),
    Pair(
        "upsample_trilinear",
        lambda x: F.interpolate(x, scale_factor=(1, 2, 1), mode="trilinear"),
        lambda x: _doubled(x, 3),
        ((2, 1, 3, 4, 2),),
    ),
    Pair("pixel_shuffle", lambda x: F.pixel_shuffle(x, 2), _shuffled, ((2, 8, 3, 4),)),
    Pair("group_norm", lambda x, w, b: F.group_norm(x, 2, w, b), _of_groups, ((3, 4, 5), (4,), (4,))),
    Pair(
        "batch_norm",
        lambda x, w, b: F.batch_norm(x, None, None, w, b, training=True),
        _of_batch,
        (_IMAGE, (3,), (3,)),
    ),
    Pair("instance_norm", F.instance_norm, lambda x: _normalised(x, (2, 3)), (_IMAGE,)),
    Pair("prod", lambda x: x.prod(-1), lambda x: x[:, 4] * x[:, 3] * x[:, 2] * x[:, 1] * x[:, 0], ((4, 5),)),
    Pair("cumprod", lambda x: x.cumprod(-1), _running_product, ((4, 5),)),
    Pair("mv", lambda w, x: w @ x, lambda w, x: (w * x).sum(1), ((5, 9), (9,))),
    Pair("dot", torch.dot, lambda x, y: (x * y).flip(0).sum(), ((33,), (33,))),
    Pair("cross", torch.linalg.cross, lambda x, y: torch.linalg.cross(y, -x), ((4, 3), (4, 3))),
    Pair("turned", _turned, _turned_in_reals, ((2, 5, 8), (5, 4))),
    Pair(
        "scatter_reduce-amax",
        lambda x: torch.full((3, 4), -9.0, dtype=x.dtype).scatter_reduce(0, _ROWS.expand(4, 7).T, x, "amax"),
        lambda x: torch.stack([x[row == _ROWS].amax(0) for row in range(3)]),
        ((7, 4),),
    ),
    Pair("embedding_bag", lambda w: _bags(w, mode="sum"), _bags_by_rows, ((5, 4),)),
    Pair("embedding_bag-mean", lambda w: _bags(w, mode="mean"), lambda w: _bags_by_rows(w, mean=True), ((5, 4),)),
    Pair(
        "embedding_bag-padding",
        lambda w: _bags(w, mode="mean", padding_idx=2),
        lambda w: _bags_by_rows(w, 2, mean=True),
        ((5, 4),),
    ),
    Pair("embedding_bag-max", lambda w: _bags(w, mode="max"), _largest_of_bags, ((5, 4),)),
    Pair("embedding_bag-weights", _weighted_bags, _weighted_bags_by_rows, ((5, 4), (7,))),
    Pair("fourier-even", _convolved, _convolved_by_sums, ((3, 8), (8,))),
    Pair("fourier-odd", _convolved, _convolved_by_sums, ((3, 9), (9,))),
    Pair("fourier-two-dims", _spectrum, _spectrum_by_steps, ((6, 5),)),
    Pair("complex-product", _complex_product, _real_products, ((3, 5, 2), (5, 4, 2))),
)


def _results(function: Function, inputs: list[Tensor], cotangent: Tensor) -> list[Tensor]:
    leaves = [x.clone().requires_grad_() for x in inputs]
    output = function(*leaves)
    return [output.detach(), *torch.autograd.grad(output, leaves, cotangent)]


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.name)
def test_another_way_is_within_the_allowance(pair: Pair) -> None:
    draw = Draw(3)
    inputs = [draw.normal(shape).float() for shape in pair.shapes]
    cotangent = draw.normal(tuple(pair.reference(*inputs).shape)).float()
    exact = [x.double() for x in (*inputs, cotangent)]
    reference = Reference(pair.reference, tuple(f"x_{k}" for k in range(len(inputs))))

    def evaluate(*given: Tensor) -> tuple[Tensor, ...]:
        outputs, gradients = reference.both(given[:-1], given[-1:])
        return *outputs, *gradients

    found = envelopes(evaluate, tuple(evaluate(*exact)), torch.float32, inputs=exact)
    for envelope, result in zip(found, _results(pair.other, inputs, cotangent), strict=True):
        comparison = compare(result, envelope)
        assert comparison.holds, (comparison.special, comparison.worst)
        most = 1e-5 if envelope.exact.numel() >= FEW_INDEPENDENT else 2e-5
        assert envelope.rms <= most * float(envelope.exact.square().mean().sqrt())
        assert not compare(result * (1 + 1e-4), envelope).holds
