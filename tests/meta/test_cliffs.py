"""Cliffs: where rounding alone decides between very different results, nothing is asked; beside them, all is asked."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from harness.deriving.contract import derive_from
from harness.discovery import operator
from harness.judging.compare import ANYTHING, NOT_FINITE, compare
from harness.judging.judge import judge
from harness.judging.oracle import expected, expected_of
from harness.judging.scenario import Call, Scenario, realise
from harness.judging.scenarios import representative
from harness.judging.subject import Subject
from harness.properties import all_properties
from harness.report.cell import FAIL, NO_EVIDENCE, PASS
from spec.by_steps import Products
from spec.contract import Operator
from spec.envelope import Envelope, envelopes
from spec.formulas import either
from spec.runs import rounded_runs

MLP = operator("mlp")
LLTM = operator("lltm")

#: Seven of seven right implementations returned -inf for one gradient here, on an NVIDIA H200 in bfloat16. The exact
#: value is -3.18e38 and the largest number 3.39e38; but the negative terms add up to -4.05e38.
PUBLISHED = Scenario(
    sizes=(("batch", 1), ("input_features", 6), ("hidden_size", 8), ("output_size", 31)),
    values="huge-hidden",
    layouts=(("output_weights", "expanded"),),
    cotangents=(("output", "ones"),),
)


def of_products(left: Tensor, right: Tensor, dtype: torch.dtype) -> Envelope:
    eager = (left.to(dtype) @ right.to(dtype),)
    (made,) = envelopes(lambda x, y: (x @ y,), eager, dtype, inputs=(left, right))
    return made


def test_a_sum_whose_partial_sums_overflow_may_overflow() -> None:
    envelope = expected(MLP, PUBLISHED, torch.bfloat16).gradients["input"]
    assert envelope.undecided.tolist() == [[False, False, False, True, False, False]]
    right = envelope.exact.to(torch.bfloat16)
    assert compare(right, envelope, NOT_FINITE).holds
    for place in range(6):
        overflown = right.clone()
        overflown[0, place] = -math.inf
        assert compare(overflown, envelope, NOT_FINITE).holds is (place == 3)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16], ids=str)
def test_terms_that_no_order_takes_beyond_the_range_are_asked(dtype: torch.dtype) -> None:
    limit = torch.finfo(dtype).max
    terms = torch.tensor([[0.25, 0.25, 0.25]], dtype=torch.float64)
    envelope = of_products(terms, torch.full((3, 1), limit / 2, dtype=torch.float64).to(dtype).double(), dtype)
    assert bool(envelope.usable.all())
    assert not compare(torch.full((1, 1), math.inf), envelope).holds


@pytest.mark.parametrize(("dtype", "large"), [(torch.float32, 3e38), (torch.bfloat16, 3e38), (torch.float16, 6e4)])
def test_terms_that_cancel_may_overflow_in_an_accumulator_or_in_parts(dtype: torch.dtype, large: float) -> None:
    terms = torch.tensor([[1.0, 1.0, -1.0, -1.0, 0.5]], dtype=torch.float64)
    envelope = of_products(terms, torch.full((5, 1), large, dtype=torch.float64).to(dtype).double(), dtype)
    assert bool(envelope.undecided.all())
    for answer in (math.inf, -math.inf, 0.5 * large):
        assert compare(torch.full((1, 1), answer), envelope).holds


def test_an_exact_value_that_rounding_takes_back_into_the_range_is_not_asked() -> None:
    terms = torch.tensor([[1.0, -0.999, 1e-3]], dtype=torch.float64)
    right = torch.tensor([[1e30], [1e30], [1e30]], dtype=torch.float64)

    def reference(x: Tensor, y: Tensor) -> tuple[Tensor]:
        return ((x @ y) * 1.7014118e11,)  # 2e27 times this is the largest number of float32

    (envelope,) = envelopes(reference, reference(terms.float(), right.float()), torch.float32, inputs=(terms, right))
    assert not bool(envelope.usable.any())
    assert bool(envelope.undecided.all())


def test_what_overflows_however_it_is_rounded_must_be_infinite() -> None:
    factors = torch.full((1, 2), 1e30, dtype=torch.float64), torch.full((2, 1), 1e30, dtype=torch.float64)
    envelope = of_products(*factors, torch.float32)
    assert not bool(envelope.undecided.any())
    assert compare(torch.full((1, 1), math.inf), envelope).holds
    assert not compare(torch.full((1, 1), 1e30), envelope).holds


def test_either_formula_is_in_half_of_the_runs() -> None:
    x = torch.linspace(-5, -3, 7, dtype=torch.float64)  # where the error of expm1(x) + 1 is a small part of e^x

    def slope(y: Tensor) -> tuple[Tensor]:
        return (either(lambda: torch.exp(y), lambda: torch.expm1(y) + 1),)

    def first(y: Tensor) -> tuple[Tensor]:
        return (torch.exp(y),)

    def second(y: Tensor) -> tuple[Tensor]:
        return (torch.expm1(y) + 1,)

    made = {f: envelopes(f, f(x.half()), torch.float16, inputs=(x,))[0] for f in (slope, first, second)}
    assert torch.equal(slope(x)[0], torch.exp(x))
    from_result = second(x.half())[0]
    assert compare(from_result, made[slope]).holds
    assert not compare(from_result, made[first]).holds
    # The mean square of eight runs that err by much and eight that err by little.
    assert torch.allclose(made[slope].sigma, made[second].sigma / math.sqrt(2), rtol=0.5)


def test_a_gradient_of_elu_from_its_result_is_right_and_a_cut_one_is_not() -> None:
    scenario = Scenario.of(representative(LLTM), values="overflowing-exp")
    envelope = expected(LLTM, scenario, torch.float16).gradients["bias"]
    right = envelope.exact.half()
    assert compare(right, envelope).holds
    assert not compare(torch.zeros_like(right), envelope).holds


def _by_step(x: Tensor, y: Tensor) -> Tensor:
    return x * torch.sigmoid(x) * y


def test_the_gradient_of_an_activation_may_be_a_product_that_overflows() -> None:
    """silu(x) = x sigmoid(x): the cotangent times x overflows where the slope is 0, and infinity times 0 is NaN."""
    contract = derive_from(lambda x, y: F.silu(x) * y, (torch.randn(6, 5), torch.randn(6, 5)), "gated").operator
    x = torch.tensor([[-1e20, -3.0, 2.0]])
    y = torch.tensor([[1e20, 2.0, 1e20]])
    one = torch.ones(1, 3)
    gradients = expected_of(contract, Call((x, y), (one,)), torch.float32).gradients
    assert gradients["x"].undecided.tolist() == [[True, False, False]]
    assert not gradients["y"].undecided.any()
    given = x.clone().requires_grad_()
    _by_step(given, y).backward(one)
    assert given.grad is not None
    assert compare(given.grad, gradients["x"]).holds
    assert not compare(given.grad * torch.tensor([1.0, 1.0, math.nan]), gradients["x"]).holds


def test_what_is_no_such_activation_is_evaluated_once() -> None:
    def plain(x: Tensor) -> Tensor:
        return torch.tanh(x)

    contract = derive_from(plain, (torch.randn(6, 5),)).operator
    assert contract.by_steps is not None
    assert contract.by_steps((torch.ones(2, 3),), (torch.ones(2, 3),)) is None


@pytest.mark.parametrize("function", [F.silu, F.gelu, partial(F.gelu, approximate="tanh"), F.mish, F.hardswish])
def test_the_products_are_the_activations(function: Callable[[Tensor], Tensor]) -> None:
    x = torch.linspace(-8, 8, 1001, dtype=torch.float64)
    with Products() as mode:
        found = function(x)
    assert mode.used
    assert torch.allclose(found, function(x), rtol=1e-13, atol=1e-15)


def test_an_activation_that_writes_into_its_input_is_left_alone() -> None:
    x = torch.linspace(-8, 8, 11)
    with Products() as mode:
        F.silu(x, inplace=True)
    assert not mode.used
    assert torch.equal(x, F.silu(torch.linspace(-8, 8, 11)))


def _subject(contract: Operator, wrong: float) -> Subject:
    def function(*inputs: Tensor) -> tuple[Tensor, ...]:
        new_h, new_cell = contract.forward(*inputs)
        return new_h, new_cell + wrong

    return Subject(contract, "candidate", "cpu", torch.float32, function)


def _odd_reference(*inputs: Tensor) -> tuple[Tensor, ...]:
    """A reference that is another function in float32: then the suite is wrong, and not who computes the same."""
    new_h, new_cell = LLTM.forward(*inputs)
    return new_h, new_cell + (2e-2 if new_cell.dtype == torch.float32 else 0.0)


def test_the_suite_suspects_itself_where_its_reference_fails_too() -> None:
    odd = replace(LLTM, forward=_odd_reference)
    parity = all_properties()["forward-parity"]
    cell = judge(_subject(odd, 0.0), parity)
    assert cell.verdict == NO_EVIDENCE
    assert "the suite suspects itself: the reference in float32 fails there too" in cell.reason
    assert judge(_subject(LLTM, 0.0), parity).verdict == PASS
    assert judge(_subject(LLTM, 2e-2), parity).verdict == FAIL


def test_errors_whose_squares_underflow_are_counted() -> None:
    """A vectorised exp flushes denormals to zero. The allowance of 1e-304 was that of an implementation without it."""
    z = torch.full((64,), -709.54, dtype=torch.float64)
    (made,) = envelopes(lambda x: (torch.sigmoid(x) * 1e4,), (torch.sigmoid(z) * 1e4,), torch.float64, inputs=(z,))
    usual = 1e4 * torch.finfo(torch.float64).tiny / math.sqrt(3)
    assert float(made.sigma.min()) > usual / 2
    assert float(made.sigma.max()) < usual * 2
    assert compare(torch.zeros_like(z), made, NOT_FINITE).holds
    assert not compare(torch.full_like(z, 40 * usual), made, NOT_FINITE).holds


def test_equal_rows_err_alike_around_a_mean_that_is_computed_again() -> None:
    """The errors of 1000 equal rows change the scale as those of one row do: they do not average out."""
    form = operator("layer_norm")
    row = torch.tensor([[1e4 + 1, 1e4 - 1, 1e4 + 0.5, 1e4 - 2]], dtype=torch.float64)
    weight, bias = torch.ones(4, dtype=torch.float64), torch.zeros(4, dtype=torch.float64)
    gains = [
        envelopes(form.forward, form.forward(*(t.float() for t in given)), torch.float32, inputs=given)[0].gain
        for given in ((row, weight, bias), (row.repeat(1000, 1), weight, bias))
    ]
    assert gains[1] > gains[0] / 3


# Factors


def _scaled_later(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return torch.softmax(q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5, -1) @ v


def _scaled_before(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return torch.softmax((q / q.shape[-1] ** 0.5) @ k.mT, -1) @ v


def _call() -> tuple[Tensor, ...]:
    return torch.randn(3, 5, 8), torch.randn(3, 7, 8), torch.randn(3, 7, 9)


def _of_scores_of_hundreds(function: Callable[..., Tensor], factor: float) -> int:
    """In how many of 40 calls a gradient is rejected, of which each element is multiplied by `factor`."""
    contract = derive_from(_scaled_later, _call).operator
    rejected = 0
    for seed in range(40):
        sizes = (("batch", 3), ("q_1", 4), ("q_2", 33), ("k_1", 33), ("v_2", 4))
        scenario = Scenario(sizes, values="shifted-values", seed=seed, cotangents=(("output", "rows"),))
        measure = expected(contract, scenario, torch.bfloat16)
        call = realise(contract, scenario, torch.bfloat16)
        inputs = [tensor.detach().requires_grad_() for tensor in call.inputs]
        found = torch.autograd.grad(function(*inputs), inputs, call.cotangents[0])
        envelopes = measure.gradients.values()
        rejected += not all(compare(factor * y, e, ANYTHING).holds for y, e in zip(found, envelopes, strict=True))
    return rejected


@pytest.mark.parametrize("function", [_scaled_later, _scaled_before])
def test_rounding_of_a_large_score_multiplies(function: Callable[..., Tensor]) -> None:
    """Scores of 500 are off by 2 in bfloat16, and weights by a factor of e^3: 3 of these 40 calls were rejected."""
    assert _of_scores_of_hundreds(function, 1.0) == 0


def test_a_factor_of_all_elements_is_seen_beside_large_scores() -> None:
    assert _of_scores_of_hundreds(_scaled_before, 1.3) > 10
    assert _of_scores_of_hundreds(_scaled_before, 2.0) > 30


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32], ids=str)
def test_a_sum_that_cancels_is_allowed_what_its_runs_show(dtype: torch.dtype) -> None:
    """Where noise adds, the deviation may be far above the element, and is no larger for that."""
    x = torch.randn(64, 256, generator=torch.Generator().manual_seed(0)).to(dtype).double()

    def zeros(x: Tensor) -> tuple[Tensor, ...]:
        return ((x - x.mean(-1, keepdim=True)).sum(-1) + 2**-10,)

    (found,) = envelopes(zeros, tuple(y.to(dtype) for y in zeros(x.to(dtype))), dtype, inputs=(x,))
    plain = torch.stack([run[0] for run in rounded_runs(zeros, (x,), dtype, 0)]).sub_(found.exact).square_().mean(0)
    assert torch.equal(found.sigma, plain.sqrt())
