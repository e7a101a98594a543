"""The allowance: which errors pass, which fail, and where there is no evidence."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from harness.judging.compare import NOT_FINITE, SAME, Statistic, compare, has_evidence
from harness.judging.oracle import evaluate, expected
from harness.judging.scenario import Scenario, realise
from spec.envelope import Envelope, envelopes
from spec.lltm import OPERATOR
from spec.operations import MOVES
from spec.rounding import Rounding
from spec.roundoff import UNIT_ROUNDOFF
from spec.runs import rounded_runs

INF, NAN = math.inf, math.nan


def envelope(exact: Tensor, dtype: torch.dtype = torch.float32, error: float = 1.0) -> Envelope:
    """The envelope of one rounding, `error` times that of the dtype."""
    exact = exact.double()
    usable = exact.isfinite() & (exact.abs() <= torch.finfo(dtype).max)
    y = exact[usable]
    spread = error * UNIT_ROUNDOFF[dtype] * y.abs()
    largest = float(spread.max()) if y.numel() else 0.0
    rms = float(spread.square().mean().sqrt()) if y.numel() else 0.0
    of_scale, decided = error * UNIT_ROUNDOFF[dtype], torch.zeros_like(usable)
    return Envelope(dtype, exact, usable, spread / math.sqrt(3), largest, rms, of_scale, decided)


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@pytest.mark.parametrize("dtype", UNIT_ROUNDOFF, ids=str)
def test_one_rounding_is_let_through_and_five_percent_is_not(dtype: torch.dtype) -> None:
    y = normal(8, 5)
    assert compare(y.to(dtype), envelope(y, dtype)).holds
    wrong = compare(1.05 * y, envelope(y, dtype))
    assert not wrong.holds
    assert bool(wrong.wrong.any())
    assert wrong.worst.used > 1


def test_the_worst_element_is_named() -> None:
    y = normal(4, 3)
    got = y.clone()
    got[2, 1] += 0.1
    found = compare(got, envelope(y))
    assert found.place == (2, 1)
    assert found.wrong.nonzero().tolist() == [[2, 1]]


def test_error_and_allowance_do_not_look_equal() -> None:
    assert Statistic("rms", 0.5, 0.001).values == "0.5, allowed 0.001"
    assert Statistic("gain", 0.0012031, 0.0011998).values == "0.001203, allowed 0.0012"
    assert Statistic("gain", 0.0, 0.0).values == "0, allowed 0"


def test_a_scale_that_no_element_shows_is_seen_by_the_gain() -> None:
    """An error of 1%, where each element may have a far larger error: only the gain shows it."""
    y = normal(100, 100)
    wide = replace(envelope(y), sigma=torch.full((10_000,), 0.1), largest=1.0, rms=0.1, gain=1e-3)
    assert compare(y + 0.05 * normal(100, 100, seed=1), wide).holds, "noise of that size is allowed"
    found = compare(1.01 * y, wide)
    assert not found.holds
    assert [statistic.name for statistic in found.statistics if statistic.used > 1] == ["gain"]


@pytest.mark.parametrize(
    ("exact", "got", "output_holds", "gradient_holds"),
    [
        (NAN, NAN, True, True),
        (NAN, 0.0, False, False),
        (NAN, 1e30, False, False),
        (NAN, INF, False, True),
        (INF, INF, True, True),
        (INF, -INF, False, True),
        (INF, NAN, False, True),
        (INF, 1.0, False, False),
        (-INF, -INF, True, True),
        (1.0, NAN, False, False),
        (1.0, INF, False, False),
        (1e39, INF, True, True),  # beyond float32: overflow is right,
        (1e39, torch.finfo(torch.float32).max, True, True),  # and so is its largest number
        (1e39, 1.0, False, True),
        (1e39, -INF, False, True),
    ],
)
def test_nan_and_infinity(exact: float, got: float, output_holds: bool, gradient_holds: bool) -> None:
    """Defect 33: where NaN is expected only NaN passes, for a gradient nothing finite."""
    y = torch.tensor([1.0, exact, 2.0], dtype=torch.float64)
    value = torch.tensor([1.0, got, 2.0], dtype=torch.float64)
    for specials, holds in ((SAME, output_holds), (NOT_FINITE, gradient_holds)):
        found = compare(value, envelope(y), specials)
        assert found.holds == holds, f"{got} for {exact} as {specials}: {found.special}"
        if not holds:
            assert found.place == (1,)
            assert "elements are" in found.special


def test_nan_elsewhere_hides_no_error() -> None:
    y = torch.tensor([NAN, 1.0, INF], dtype=torch.float64)
    assert not compare(torch.tensor([NAN, 1.1, INF]), envelope(y)).holds
    assert compare(torch.tensor([NAN, 1.0, INF]), envelope(y)).holds


@pytest.mark.parametrize(
    "y", [torch.zeros(3, 4), torch.zeros(0, 4), torch.full((3,), NAN), 1e-12 * torch.ones(3)], ids=str
)
def test_where_a_wrong_answer_passes_there_is_no_evidence(y: Tensor) -> None:
    wide = envelope(y) if y.numel() == 0 or not bool(y.isfinite().all()) else replace(envelope(y), largest=1.0, rms=1.0)
    wide = replace(wide, sigma=torch.full_like(wide.sigma, 1.0), gain=10.0)
    assert not has_evidence(wide)


def test_where_a_wrong_answer_fails_there_is_evidence() -> None:
    assert has_evidence(envelope(normal(3, 4)))
    assert has_evidence(envelope(torch.ones(3, 4))), "equal rows are no reason to doubt"
    assert not has_evidence(envelope(torch.zeros(3, 4))), "zeros are right here, so they are no evidence"


def test_what_nobody_listed_rounds_and_what_only_moves_is_exact() -> None:
    x = normal(6, 6)
    unit = UNIT_ROUNDOFF[torch.float16]
    assert torch.ops.aten.erfinv.default not in MOVES
    for function in (torch.erfinv, torch.tanh, lambda t: t * 3, lambda t: t @ t, lambda t: t.sum(0), torch.expm1):
        exact = function(x.tanh())
        with Rounding(torch.float16, seed=0):
            rounded = function(x.tanh().clone())
        off = (rounded - exact).abs() / exact.abs()
        assert bool((off > 0).all()), f"{function} was computed without an error"
        assert float(off.median()) < 100 * unit
    for move in (lambda t: t.t(), lambda t: t.reshape(4, 9), lambda t: -t, lambda t: torch.cat([t, t]), torch.relu):
        with Rounding(torch.float16, seed=0):
            assert torch.equal(move(x), move(x.clone()))
            moved = move(x)
        assert torch.equal(moved, move(x)), f"{move} only moves, but was given an error"


def test_an_envelope_is_the_same_every_time_and_the_seed_matters() -> None:
    x = normal(4, 4)

    def found(seed: int) -> Envelope:
        (made,) = envelopes(lambda: (torch.tanh(x @ x),), (torch.tanh(x.float() @ x.float()),), torch.float32, seed)
        return made

    torch.manual_seed(1)
    first = found(0)
    torch.manual_seed(2)
    again = found(0)
    assert torch.equal(first.sigma, again.sigma)
    assert (first.largest, first.rms, first.gain) == (again.largest, again.rms, again.gain)
    assert not torch.equal(first.sigma, found(1).sigma)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_no_false_alarm_in_100_draws(dtype: torch.dtype) -> None:
    """The reference in the dtype itself, evaluated in another way than that of the envelope."""
    for seed in range(100):
        scenario = Scenario((("batch", 3), ("input_features", 4), ("state_size", 5)), seed=seed)
        measure = expected(OPERATOR, scenario, dtype)
        call = realise(OPERATOR, scenario, dtype)
        eager = evaluate(OPERATOR, call)
        with_gradients = {**measure.outputs, **{f"gradient of {name}": e for name, e in measure.gradients.items()}}
        leaves = [tensor.requires_grad_() for tensor in call.inputs]
        outputs = OPERATOR.forward(*leaves)
        gradients = torch.autograd.grad(outputs, leaves, call.cotangents)
        for (name, made), one, another in zip(with_gradients.items(), eager, (*outputs, *gradients), strict=True):
            for got in (one, another):
                found = compare(got, made)
                assert found.holds, f"{name} of seed {seed}: {found.worst}"


@pytest.mark.parametrize(
    ("dtype", "scenario"),
    [
        (
            torch.bfloat16,
            Scenario(
                (("batch", 1), ("input_features", 1), ("state_size", 63)),
                values="tiny-gates",
                layouts=(("weights", "expanded"),),
                cotangents=(("new_cell", "ones"),),
            ),
        ),
        (
            torch.float64,
            Scenario((("batch", 1), ("input_features", 1), ("state_size", 7)), values="overflowing-exp"),
        ),
    ],
    ids=["terms-that-all-underflow", "sigmoid-below-the-range-of-float64"],
)
def test_no_false_alarm_at_the_ends_of_the_range(dtype: torch.dtype, scenario: Scenario) -> None:
    for seed in range(20):
        drawn = replace(scenario, seed=seed)
        measure = expected(OPERATOR, drawn, dtype)
        call = realise(OPERATOR, drawn, dtype)
        leaves = [tensor.detach().requires_grad_() for tensor in call.inputs]
        gradients = torch.autograd.grad(OPERATOR.forward(*leaves), leaves, call.cotangents)
        for envelope, got in zip(measure.gradients.values(), gradients, strict=True):
            found = compare(got, envelope)
            assert found.holds, f"seed {seed}: {found.worst}"


def _in_two_steps(x: Tensor) -> tuple[Tensor, ...]:
    return ((1 + x) - 1,)


@pytest.mark.parametrize("elements", [1, 16, 8192])
def test_where_all_elements_are_equal_there_is_one_error(elements: int) -> None:
    """Of 640 answers with errors of their own, as large as those of real operations, none fails; a wrong one does."""
    y = torch.full((elements,), 0.7, dtype=torch.float64)
    real = 0.7  # the error of an operation is at most half a unit in the last place, which is u/2 to u of its result
    for seed in range(40):
        found = envelopes(_in_two_steps, (y,), torch.float32, seed=16 * seed, inputs=[y])[0]
        others = rounded_runs(_in_two_steps, [y], torch.float32, seed=16 * seed + 4000)
        assert all(compare(y + real * (run[0] - y), found).holds for run in others)
        assert not compare(y * (1 + 40 * UNIT_ROUNDOFF[torch.float32]), found).holds


@pytest.mark.parametrize(("large", "others"), [(1e3, 1.0), (1e3, 1e3), (1.0, 1.0)])
def test_one_element_may_make_all_of_the_error(large: float, others: float) -> None:
    """The limit is larger where one of 40 elements errs a thousand times as much as the others."""
    y = 0.5 + torch.rand(40, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    lost = torch.full((40,), others, dtype=torch.float64)
    lost[7] = large

    def cancelling(x: Tensor) -> tuple[Tensor, ...]:
        return ((lost + x) - lost,)

    errors = [(run[0] - y).square().mean().sqrt() for run in rounded_runs(cancelling, [y], torch.float32, seed=0)]
    found = envelopes(cancelling, (y,), torch.float32, seed=0, inputs=[y])[0]
    assert (found.rms > 1.05 * float(max(errors))) is (large > others)


def test_a_number_that_is_rounded_once_has_no_larger_limit() -> None:
    """Such an error is bounded. A loss that is added up in bfloat16 is found by that limit."""
    y = torch.tensor(5.5, dtype=torch.float64)
    errors = [(run[0] - y).abs() for run in rounded_runs(lambda x: (x * 1,), [y], torch.bfloat16, seed=0)]
    found = envelopes(lambda x: (x * 1,), (y,), torch.bfloat16, seed=0, inputs=[y])[0]
    assert found.rms == found.largest == float(max(errors))


def test_of_many_elements_the_largest_run_is_the_limit() -> None:
    y = normal(4096) ** 2
    errors = [(run[0] - y).square().mean().sqrt() for run in rounded_runs(_in_two_steps, [y], torch.float32, seed=0)]
    found = envelopes(_in_two_steps, (y,), torch.float32, seed=0, inputs=[y])[0]
    assert found.rms == pytest.approx(float(max(errors)), rel=1e-12)


def test_what_float64_loses_in_its_range_need_not_be_lost() -> None:
    """sigmoid(-710) is 0 in float64, since 1 + exp(710) overflows; exp(logsigmoid(-710)) is 4.5e-309, and right."""
    sizes = (("batch", 1), ("input_features", 1), ("state_size", 7))
    scenario = Scenario(sizes, values="overflowing-exp")
    wide = expected(OPERATOR, scenario, torch.float64).gradients["weights"]
    assert wide.exact[6, 0] == 0
    assert compare(wide.exact, wide).holds
    for loss, holds in ((-4.52178192e-306, True), (-1e-304, False), (1e-300, False)):
        answer = wide.exact.clone()
        answer[6, 0] = loss
        assert compare(answer, wide).holds is holds, loss
