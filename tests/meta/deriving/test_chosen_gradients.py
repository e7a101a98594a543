"""References whose gradient is chosen, is 0 or is not asked; and results that rounding moves by a step."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from harness import discovery
from harness.deriving.contract import derive_from
from harness.deriving.derived import Derived
from harness.deriving.saving import source
from harness.errors import UsageError
from harness.judging.compare import compare
from harness.judging.judge import judge
from harness.judging.oracle import expected
from harness.judging.scenario import Scenario
from harness.judging.subject import Subject
from harness.properties import all_properties
from harness.report.cell import FAIL, NO_EVIDENCE, NOT_RUN, PASS
from spec.contract import DTYPES

X, SCALE = torch.randn(8, 64, generator=torch.Generator().manual_seed(0)), torch.tensor([0.3])
#: What finds most for least, and what looks at gradients in ways of its own.
QUICK = ("forward-parity", "vjp-parity", "layouts", "harvested-sizes")
OTHERS = ("autograd-hooks", "functional-transforms", "global-state", "gradcheck", "double-backward", "raw-backward")


def fake_quantise(x: Tensor, scale: Tensor) -> Tensor:
    """With a straight-through estimator: the gradient of x is the cotangent, and that of the scale is 0."""
    quantised = torch.clamp(torch.round(x / scale), -8, 7) * scale
    return x + (quantised - x).detach()


fake_quantise.gradient = "autograd"  # type: ignore[attr-defined]


class _StraightThrough(torch.autograd.Function):
    @staticmethod
    def forward(x: Tensor, scale: Tensor) -> Tensor:
        return torch.clamp(torch.round(x * (1 / scale)), -8, 7) * scale

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        return g, None


def straight_through(x: Tensor, scale: Tensor) -> Tensor:
    result: Tensor = _StraightThrough.apply(x, scale)
    return result


def clipped_gradient(x: Tensor, scale: Tensor) -> Tensor:
    """Wrong: no gradient where the value is cut."""
    return torch.where((x / scale).abs() < 8, straight_through(x, scale), straight_through(x, scale).detach())


def rounded_down(x: Tensor, scale: Tensor) -> Tensor:
    """Wrong values, and the right gradient."""
    return x + (torch.clamp(torch.floor(x / scale), -8, 7) * scale - x).detach()


class _Spike(torch.autograd.Function):
    """A surrogate gradient. It has no `setup_context`, so torch.func does not take it."""

    @staticmethod
    def forward(ctx: Any, v: Tensor) -> Tensor:  # type: ignore[override]
        ctx.save_for_backward(v)
        return (v > 0).to(v.dtype)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        (v,) = ctx.saved_tensors
        return g / (1 + v.abs()) ** 2


def spike(v: Tensor) -> Tensor:
    result: Tensor = _Spike.apply(v)
    return result


spike.gradient = "autograd"  # type: ignore[attr-defined]


class _FastSpike(torch.autograd.Function):
    @staticmethod
    def forward(v: Tensor) -> Tensor:
        return torch.where(v > 0, 1.0, 0.0).to(v.dtype)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        (v,) = ctx.saved_tensors
        return g * torch.reciprocal(1 + v.abs()).square()


def spike_by_parts(v: Tensor) -> Tensor:
    result: Tensor = _FastSpike.apply(v)
    return result


class _BadSpike(_FastSpike):
    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        (v,) = ctx.saved_tensors
        return g * torch.reciprocal(1 + v.abs())


def steeper_spike(v: Tensor) -> Tensor:
    result: Tensor = _BadSpike.apply(v)
    return result


@torch.no_grad()
def normalised(x: Tensor) -> Tensor:
    """A reference for inference."""
    return x / x.square().mean(-1, keepdim=True).add(1e-6).sqrt()


normalised.gradient = "none"


class _Inference(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:  # type: ignore[override]
        return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        raise NotImplementedError("this kernel is for inference")


def normalised_for_inference(x: Tensor) -> Tensor:
    result: Tensor = _Inference.apply(x)
    return result


def one_percent_more(x: Tensor) -> Tensor:
    return 1.01 * normalised_for_inference(x)


def on_a_grid(x: Tensor, scale: Tensor) -> Tensor:
    """The gradient of x is 0 everywhere, and that of the scale is not."""
    return torch.round(x.float() / scale.float()).clamp(-8, 7).to(x.dtype) * scale


def on_a_grid_by_inverse(x: Tensor, scale: Tensor) -> Tensor:
    return torch.round(x.detach().float() * (1 / scale.detach().float())).clamp(-8, 7).to(x.dtype) * scale


RIGHT: tuple[tuple[Callable[..., Any], Callable[..., Any], tuple[Tensor, ...]], ...] = (
    (fake_quantise, straight_through, (X, SCALE)),
    (spike, spike_by_parts, (X,)),
    (normalised, normalised_for_inference, (X,)),
    (on_a_grid, on_a_grid_by_inverse, (X, SCALE)),
)
WRONG: tuple[tuple[Callable[..., Any], Callable[..., Any], tuple[Tensor, ...], str], ...] = (
    (fake_quantise, clipped_gradient, (X, SCALE), "vjp-parity"),
    (fake_quantise, rounded_down, (X, SCALE), "forward-parity"),
    (spike, steeper_spike, (X,), "vjp-parity"),
    (normalised, one_percent_more, (X,), "forward-parity"),
    (on_a_grid, lambda x, scale: on_a_grid(x, scale.detach()) + 0 * scale, (X, SCALE), "vjp-parity"),
)


@cache
def derived(reference: Callable[..., Any], example: tuple[Tensor, ...]) -> Derived:
    return derive_from(reference, example)


def _cell(
    reference: Callable[..., Any], function: Callable[..., Any], example: tuple[Tensor, ...], name: str, dtype: Any
) -> Any:
    operator = derived(reference, example).operator
    return judge(Subject(operator, "it", "cpu", dtype, function), all_properties()[name])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("reference", "function", "example"), RIGHT)
def test_what_is_right_passes(
    reference: Callable[..., Any], function: Callable[..., Any], example: tuple[Tensor, ...], dtype: torch.dtype
) -> None:
    if dtype not in derived(reference, example).operator.dtypes:
        return
    for name in QUICK:
        found = _cell(reference, function, example, name, dtype)
        assert found.verdict in (PASS, NOT_RUN), f"{name}: {found.reason}"


@pytest.mark.parametrize("name", OTHERS)
def test_no_property_takes_the_gradient_for_a_derivative(name: str) -> None:
    dtype = torch.float32 if name in ("autograd-hooks", "global-state", "raw-backward") else torch.float64
    for reference, function, example in RIGHT[:2]:
        found = _cell(reference, function, example, name, dtype)
        if name == "functional-transforms" and reference is fake_quantise:
            assert "torch.func.vmap raised" in found.reason, "the candidate's own: it has no rule for vmap"
            continue
        assert found.verdict in (PASS, NOT_RUN), f"{name}: {found.reason}"
    assert _cell(spike, spike_by_parts, (X,), "gradcheck", torch.float64).reason == (
        "the gradient of spike is chosen: its contract says it is no derivative"
    )


@pytest.mark.parametrize(("reference", "function", "example", "name"), WRONG)
def test_what_is_wrong_fails(
    reference: Callable[..., Any], function: Callable[..., Any], example: tuple[Tensor, ...], name: str
) -> None:
    for dtype in (torch.float32, torch.bfloat16):
        assert _cell(reference, function, example, name, dtype).verdict == FAIL


def test_what_was_found_is_said_and_read_back(tmp_path: Path) -> None:
    found = derived(fake_quantise, (X, SCALE))
    assert "scale has no gradient: that of the reference is 0 everywhere, or noise" in found.found
    assert [arg.differentiable for arg in found.operator.inputs] == [True, False]
    path = tmp_path / "contract.py"
    path.write_text(source(found, tmp_path).replace("function_of('',", f"function_of({__file__!r},"))
    read = discovery.import_file(path, "chosen_contract").OPERATOR
    assert (read.is_derivative, read.has_steps, read.inputs) == (False, True, found.operator.inputs)
    assert not derived(normalised, (X,)).operator.has_gradient
    assert (
        "no gradient is asked: the reference has none or says so, or --forward-only does"
        in derived(normalised, (X,)).found
    )
    plain = derive_from(torch.nn.functional.softsign, (X,))
    assert (plain.operator.is_derivative, plain.operator.has_steps) == (True, False)


def test_a_gradient_that_only_large_values_show_is_asked() -> None:
    def limited(x: Tensor, most: Tensor) -> Tensor:
        return torch.minimum(x, most)

    found = derive_from(limited, (X, torch.full((64,), 100.0)))
    assert [arg.differentiable for arg in found.operator.inputs] == [True, True]


def test_a_gradient_that_is_noise_alone_is_not_asked() -> None:
    """A normalisation subtracts the bias again: its gradient is a few units of the last place of what cancels."""

    def shifted(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        return torch.nn.functional.layer_norm(x * weight + bias, x.shape[-1:])

    def without_the_bias(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        return torch.nn.functional.layer_norm(x * weight, x.shape[-1:])

    example = X, torch.randn(64), torch.randn(1)
    assert [arg.differentiable for arg in derived(shifted, example).operator.inputs] == [True, True, False]
    for name in QUICK[:3]:
        assert _cell(shifted, without_the_bias, example, name, torch.float32).verdict == PASS


def test_a_reference_without_a_derivative_says_what_to_write() -> None:
    def forgotten(x: Tensor) -> Tensor:
        return x + (torch.round(x) - x).detach()

    with pytest.raises(
        UsageError, match=re.escape('estimator\'s, write forgotten.gradient = "autograd" below the reference')
    ):
        derive_from(forgotten, (X,))
    with pytest.raises(
        UsageError, match=re.escape('judged, pass --forward-only or write forgotten.gradient = "none" below it')
    ):
        derive_from(torch.no_grad()(forgotten), (X,))
    forgotten.gradient = "chosen"  # type: ignore[attr-defined]
    with pytest.raises(UsageError, match="gradient was 'chosen', but should be 'derivative', 'autograd' or 'none'"):
        derive_from(forgotten, (X,))
    forgotten.gradient = None  # type: ignore[attr-defined]
    with pytest.raises(UsageError, match="gradient was None, but should be"):
        derive_from(forgotten, (X,))


def test_an_element_that_rounding_moves_by_a_step_is_undecided() -> None:
    """Of bfloat16 operands, x / scale is within a roundoff of many halves; of float32 ones, of nearly none."""

    def grid(x: Tensor, scale: Tensor) -> Tensor:
        return torch.round(x / scale) * scale

    operator = derive_from(grid, (X, SCALE)).operator
    scenario = Scenario((("batch", 64), ("x_1", 64)))
    coarse, fine = (expected(operator, scenario, dtype).outputs["output"] for dtype in (torch.bfloat16, torch.float32))
    assert 0.01 < float(coarse.undecided.double().mean()) < 0.5
    assert float(fine.undecided.double().mean()) < 0.001
    moved = torch.where(coarse.undecided, coarse.exact + 1, coarse.exact)
    assert compare(moved.bfloat16(), coarse).holds
    assert not compare((coarse.exact + 1).bfloat16(), coarse).holds


def test_no_evidence_says_that_a_step_may_decide() -> None:
    def few(x: Tensor) -> Tensor:
        return torch.round(100 * x.sum(-1)) / 100

    cell = _cell(few, few, (X,), "layouts", torch.bfloat16)
    assert cell.verdict == NO_EVIDENCE
    assert "let it round what it has computed in float32" in cell.reason
