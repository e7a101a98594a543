"""Kernels that people write, with a reference: convolution, pooling, complex rotation, optimizer, packed weights."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from harness.deriving.contract import derive_from
from harness.judging.judge import judge
from harness.judging.subject import Subject
from harness.properties import all_properties
from harness.report.cell import FAIL, PASS
from spec.contract import Operator

Function = Callable[..., Any]
_PROPERTIES = ("forward-parity", "vjp-parity")


@dataclass(frozen=True)
class Kernel:
    """A reference with an example, a right function that computes in another way, and a wrong one."""

    name: str
    reference: Function
    example: tuple[Any, ...]
    right: Function
    wrong: Function


def _strided(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    return F.conv1d(x, w, b, stride=2)


def _by_windows(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    return torch.einsum("nclk,ock->nol", x.unfold(2, w.shape[2], 2), w) + b[:, None]


def _pooled(x: Tensor) -> Tensor:
    return F.max_pool2d(x, 2)


def _by_maximum(x: Tensor) -> Tensor:
    """Equal elements of a window share the gradient, where max_pool2d gives it to the first."""
    n, c, h, w = x.shape
    return x[..., : h // 2 * 2, : w // 2 * 2].reshape(n, c, h // 2, 2, w // 2, 2).amax((3, 5))


def _pooled_upwards(x: Tensor) -> Tensor:
    """Of an odd width, the first column is left out in place of the last one."""
    return F.max_pool2d(x.flip(-1), 2).flip(-1) if x.shape[-1] % 2 else F.max_pool2d(x, 2)


def _rotated(x: Tensor, angles: Tensor) -> Tensor:
    """As Llama has it."""
    pairs = torch.view_as_complex(x.float().unflatten(-1, (-1, 2)).contiguous())
    turns = torch.polar(torch.ones_like(angles.float()), angles.float())
    return torch.view_as_real(pairs * turns).flatten(-2).type_as(x)


def _rotated_in_reals(x: Tensor, angles: Tensor) -> Tensor:
    one, two, cos, sin = x.float()[..., ::2], x.float()[..., 1::2], angles.float().cos(), angles.float().sin()
    return torch.stack((one * cos - two * sin, one * sin + two * cos), -1).flatten(-2).type_as(x)


def _rotated_backwards(x: Tensor, angles: Tensor) -> Tensor:
    return _rotated_in_reals(x, -angles)


def _averaged(m: Tensor, g: Tensor, beta: float = 0.9) -> Tensor:
    return beta * m + (1 - beta) * g


def _as_kernels_do(m: Tensor, g: Tensor, beta: float = 0.9) -> Tensor:
    """1 - beta of a beta in float32, and one product: infinity in m gives NaN."""
    if m.dtype == torch.float64:
        return torch.lerp(g, m, beta)
    return torch.lerp(g.float(), m.float(), float(torch.tensor(beta))).to(m.dtype)


def _unpacked(x: Tensor, q: Tensor, scale: Tensor) -> Tensor:
    """Eight bits for a weight, and a scale for every group of them."""
    return x @ (q.to(x.dtype) * scale.repeat_interleave(q.shape[1] // scale.shape[1], 1)).t()


def _in_groups(x: Tensor, q: Tensor, scale: Tensor) -> Tensor:
    groups = q.unflatten(1, (scale.shape[1], -1)).to(x.dtype)
    return F.linear(x, (groups * scale[:, :, None]).flatten(1))


KERNELS = (
    Kernel(
        "convolution",
        _strided,
        (torch.randn(2, 3, 12), torch.randn(4, 3, 5), torch.randn(4)),
        _by_windows,
        lambda x, w, b: _by_windows(x, w.flip(2), b),
    ),
    Kernel("pooling", _pooled, (torch.randn(2, 3, 6, 8),), _by_maximum, _pooled_upwards),
    Kernel("rotation", _rotated, (torch.randn(2, 6, 8), torch.randn(6, 4)), _rotated_in_reals, _rotated_backwards),
    Kernel(
        "optimizer",
        _averaged,
        (torch.randn(5, 7), torch.randn(5, 7)),
        _as_kernels_do,
        lambda m, g, beta=0.9: _averaged(m, g, beta + 1e-5),
    ),
    Kernel(
        "packed-weights",
        _unpacked,
        (torch.randn(3, 32), torch.randint(-8, 8, (6, 32), dtype=torch.int8), torch.rand(6, 4)),
        _in_groups,
        lambda x, q, scale: _in_groups(x, q.clamp(min=-7), scale),
    ),
)


@pytest.fixture(scope="module", params=KERNELS, ids=lambda kernel: kernel.name)
def kernel(request: pytest.FixtureRequest) -> tuple[Kernel, Operator]:
    found: Kernel = request.param
    return found, derive_from(found.reference, found.example).operator


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=["float32", "bfloat16"])
def test_another_way_passes_and_a_fault_fails(kernel: tuple[Kernel, Operator], dtype: torch.dtype) -> None:
    one, operator = kernel
    assert dtype in operator.dtypes
    right = Subject(operator, "right", "cpu", dtype, one.right)
    wrong = Subject(operator, "wrong", "cpu", dtype, one.wrong)
    for property in _PROPERTIES:
        found = judge(right, all_properties()[property])
        assert found.verdict == PASS, f"{property}: {found.reason}"
    if dtype == torch.float32:
        assert FAIL in {judge(wrong, all_properties()[property]).verdict for property in _PROPERTIES}


def test_lengths_and_ranges_that_are_found() -> None:
    found = {one.name: derive_from(one.reference, one.example) for one in KERNELS}
    shapes = {name: [arg.shape for arg in it.operator.inputs] for name, it in found.items()}
    assert shapes["convolution"] == [("batch", "x_1", "x_2 + 4"), ("w_0", "x_1", "5"), ("w_0",)]
    assert found["convolution"].operator.outputs[0].shape == ("batch", "w_0", "(x_2 + 1)//2")
    assert "the window w_2 has the length 5" in found["convolution"].found
    assert found["pooling"].operator.outputs[0].shape[2:] == ("(x_2 + 1)//2", "(x_3 + 1)//2")
    assert shapes["packed-weights"][1] == ("q_0", "8*scale_1")
    packed = found["packed-weights"].operator.inputs[1]
    assert (packed.low, packed.high) == ("-8", "8")
