"""The dtypes of a derived contract: tensors that have their own, references that cast, dtypes that are left out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from harness.deriving.contract import derive_from
from harness.errors import UsageError
from harness.judging.judge import judge
from harness.judging.subject import Subject
from harness.properties import all_properties
from harness.report.cell import FAIL, PASS
from spec.blocks import any_order, narrowed, wide
from spec.contract import DTYPES, Draw
from spec.derived import Reference
from spec.rounding import Rounding
from spec.roundoff import UNIT_ROUNDOFF
from spec.runs import rounded_runs

HALF_TYPES = (torch.float16, torch.bfloat16)
#: The dtypes of a reference that computes in float32.
CASTS = (torch.float32, *HALF_TYPES)
EPS = 1e-6


def mixed(x: Tensor, weight: Tensor) -> Tensor:
    """Weights in float32, whatever x is."""
    wide = x.float()
    return (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + EPS) * weight).to(x.dtype)


def frequencies(x: Tensor) -> Tensor:
    """What is made of integers alone is float32."""
    wide = x.float()
    return (wide * (1 / 10000 ** (torch.arange(x.shape[-1]) / x.shape[-1])).cos()).to(x.dtype)


def floats(x: Tensor) -> Tensor:
    return (x.float() * (torch.arange(x.shape[-1]).float() / 7).cos()).type_as(x)


def softmax(x: Tensor) -> Tensor:
    return F.softmax(x, -1, dtype=torch.float32).to(x.dtype)


def written(x: Tensor) -> Tensor:
    """A cast by an assignment."""
    found = torch.zeros_like(x)
    found[..., 1:] = x.float()[..., :-1].sigmoid()
    return found


def accumulated(x: Tensor) -> Tensor:
    """In place, in float32."""
    total = torch.zeros_like(x, dtype=torch.float32)
    total += x
    total.mul_(2)
    return total.to(x.dtype)


CONSTANT = torch.linspace(0.1, 1.0, 8)


def constant(x: Tensor) -> Tensor:
    """With a float32 tensor from outside."""
    return (x.float() * CONSTANT).to(x.dtype)


def promoted(x: Tensor) -> Tensor:
    return x.to(torch.promote_types(x.dtype, torch.float32)).tanh().to(x.dtype)


@pytest.mark.parametrize("function", [frequencies, floats, softmax, written, accumulated, constant])
def test_a_reference_that_computes_in_float32_judges_but_float64(function: Callable[..., Any]) -> None:
    found = derive_from(function, (torch.randn(6, 8),))
    assert found.operator.dtypes == CASTS
    assert "float64: the reference computes in float32" in found.left_out
    for dtype in HALF_TYPES:
        subject = Subject(found.operator, "it", "cpu", dtype, function)
        for property in ("forward-parity", "vjp-parity"):
            assert judge(subject, all_properties()[property]).verdict == PASS


@pytest.mark.parametrize("function", [frequencies, floats, softmax, written, accumulated, constant, promoted])
def test_no_digit_of_float64_is_lost_in_a_cast_to_float32(function: Callable[..., Any]) -> None:
    x = Draw(0).normal((6, 8))
    (found,) = Reference(function, ("x",)).forward(x)
    usual = torch.get_default_dtype()
    try:
        torch.set_default_dtype(torch.float64)
        exact = _EXACT[function](x)
    finally:
        torch.set_default_dtype(usual)
    assert found.dtype == torch.float64
    assert float((found - exact).abs().max()) < 1e-14
    assert torch.get_default_dtype() == usual


_EXACT: dict[Callable[..., Any], Callable[[Tensor], Tensor]] = {
    frequencies: lambda x: x * (1 / 10000 ** (torch.arange(8) / 8)).cos(),
    floats: lambda x: x * (torch.arange(8).double() / 7).cos(),
    softmax: lambda x: F.softmax(x, -1),
    written: lambda x: F.pad(x[:, :-1].sigmoid(), (1, 0)),
    accumulated: lambda x: 2 * x,
    constant: lambda x: x * CONSTANT.double(),
    promoted: torch.tanh,
}


def test_a_reference_that_promotes_judges_float64_too() -> None:
    assert derive_from(promoted, (torch.randn(6, 8),)).operator.dtypes == DTYPES


def promoted_softmax(x: Tensor) -> Tensor:
    powers = x.to(torch.promote_types(x.dtype, torch.float32)).exp()
    return (powers / powers.sum(-1, keepdim=True)).to(x.dtype)


def test_what_is_promoted_is_rounded_once() -> None:
    x = Draw(0).normal((6, 8)).bfloat16().double()
    reference = Reference(promoted_softmax, ("x",))
    (exact,) = reference.forward(x)
    for seed in range(8):
        with Rounding(torch.bfloat16, seed):
            (found,) = reference.forward(x)
        assert float(((found - exact).abs() / exact).max()) <= 1.001 * UNIT_ROUNDOFF[torch.bfloat16]


@pytest.mark.parametrize("reference", [softmax, promoted_softmax])
def test_what_is_float32_is_not_rounded_to_half_precision(reference: Callable[..., Any]) -> None:
    """One that rounds there errs too much."""

    def in_float32(x: Tensor) -> Tensor:
        powers = x.float().exp()
        return (powers / powers.sum(-1, keepdim=True)).to(x.dtype)

    def rounds_each_step(x: Tensor) -> Tensor:
        powers = x.exp()
        total = torch.zeros_like(powers[..., :1])
        for column in powers.split(1, -1):
            total = total + column
        return powers / total

    contract = derive_from(reference, (torch.randn(6, 64),)).operator
    assert _verdict(contract, in_float32, torch.bfloat16) == PASS
    assert _verdict(contract, rounds_each_step, torch.bfloat16) == FAIL


def _verdict(contract: Any, function: Callable[..., Any], dtype: torch.dtype) -> str:
    return judge(Subject(contract, "it", "cpu", dtype, function), all_properties()["sizes"]).verdict


def test_float32_weights_beside_half_inputs_are_float32_in_every_call() -> None:
    found = derive_from(mixed, (torch.randn(6, 64).bfloat16(), torch.randn(64)))
    x, weight = found.operator.inputs
    assert (x.dtype, weight.dtype, weight.differentiable) == (None, torch.float32, True)
    assert found.operator.dtypes == CASTS
    assert "float64: some tensors are float32 in every call" in found.left_out

    def right(x: Tensor, weight: Tensor) -> Tensor:
        assert weight.dtype == torch.float32
        return F.rms_norm(x.float(), (x.shape[-1],), weight, EPS).to(x.dtype)

    def wrong(x: Tensor, weight: Tensor) -> Tensor:
        return F.rms_norm(x.float(), (x.shape[-1],), weight.detach(), EPS).to(x.dtype) + 0 * weight.sum().to(x.dtype)

    for dtype in CASTS:
        for function, verdict in ((right, PASS), (wrong, FAIL)):
            subject = Subject(found.operator, "it", "cpu", dtype, function)
            assert judge(subject, all_properties()["vjp-parity"]).verdict == verdict


def test_tensors_of_one_dtype_have_that_of_the_call() -> None:
    for dtype in (torch.float32, torch.bfloat16):
        inputs = derive_from(mixed, (torch.randn(6, 64).to(dtype), torch.randn(64).to(dtype))).operator.inputs
        assert [arg.dtype for arg in inputs] == [None, None]


def _returns_float32(x: Tensor) -> Tensor:
    return x.float() * 2


def _refuses_half(x: Tensor) -> Tensor:
    if x.element_size() == 2:
        raise ValueError("no half types")
    return x * 2


def _in_bfloat16(x: Tensor) -> Tensor:
    return x * torch.ones(x.shape[-1], dtype=torch.bfloat16)


@pytest.mark.parametrize(
    ("function", "left", "reason"),
    [
        (_returns_float32, (torch.float32,), "bfloat16: the reference returns float32; cast back with .to(x.dtype)"),
        (_refuses_half, DTYPES[:2], "float16: the reference raises ValueError: no half types"),
    ],
)
def test_a_dtype_is_left_out_with_the_reason(function: Any, left: tuple[torch.dtype, ...], reason: str) -> None:
    found = derive_from(function, (torch.randn(6, 8),))
    assert found.operator.dtypes == left
    assert any(reason in text for text in found.left_out)


def test_a_reference_that_judges_in_no_dtype_is_refused() -> None:
    def neither(x: Tensor) -> Tensor:
        if x.dtype != torch.float64:
            raise ValueError("float64 alone")
        return x.tanh()

    neither.__annotations__["x"] = type("_", (), {"dim_str": "n", "dtypes": ["float32"]})
    with pytest.raises(UsageError, match=r"can judge in no dtype. float32: the reference raises ValueError: float64"):
        derive_from(neither)


def test_another_dtype_inside_is_refused() -> None:
    with pytest.raises(UsageError, match="computes in bfloat16 whatever the dtype of its arguments is, but should"):
        derive_from(_in_bfloat16, (torch.randn(6, 8),))


class _SavesItsResult(torch.autograd.Function):
    """Softmax whose backward takes the result as it was saved, in fewer digits."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, digits: torch.dtype) -> Tensor:
        y = F.softmax(x, -1)
        ctx.save_for_backward(y.to(digits))
        return y

    @staticmethod
    def backward(ctx: Any, cotangent: Tensor) -> tuple[Tensor, None]:
        (y,) = (saved.to(cotangent.dtype) for saved in ctx.saved_tensors)
        return y * (cotangent - (y.float() * cotangent.float()).sum(-1, keepdim=True)).to(cotangent.dtype), None


@pytest.mark.parametrize(("digits", "verdict"), [(torch.bfloat16, PASS), (torch.float8_e4m3fn, FAIL)])
def test_a_result_may_be_saved_in_the_dtype_and_in_no_fewer_digits(digits: torch.dtype, verdict: str) -> None:
    contract = derive_from(softmax, (torch.randn(4, 64, generator=torch.Generator().manual_seed(1)),)).operator
    subject = Subject(contract, "it", "cpu", torch.bfloat16, lambda x: _SavesItsResult.apply(x, digits))
    found = judge(subject, all_properties()["combinations"])
    assert found.verdict == verdict, found.reason


def test_half_of_the_runs_go_on_with_what_was_saved_in_the_dtype() -> None:
    def evaluate(x: Tensor) -> tuple[Tensor, ...]:
        with wide():
            result = x * 1.1
        narrow = narrowed(result)
        with any_order(), wide():
            return narrow, result * 3.0

    x = Draw(0).normal((6, 8)).bfloat16().double()
    for given in ((x,), ()):  # runs at once, and one by one
        runs = rounded_runs(lambda *inputs: evaluate(*(inputs or (x,))), given, torch.bfloat16, 0)
        saving = [bool(torch.allclose(after, 3 * narrow, rtol=1e-5)) for narrow, after in runs]
        assert saving == [bool(number & 8) for number in range(len(runs))]
