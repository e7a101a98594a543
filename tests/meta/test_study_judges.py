"""The judges of the study accept and reject what their rules say, on made-up values."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from harness.discovery import operator
from harness.judging.oracle import evaluate
from harness.judging.scenario import Call, realise
from harness.judging.scenarios import ordinary, smallest
from spec.contract import DTYPES
from spec.roundoff import UNIT_ROUNDOFF
from tools.study.judges import DECIMAL_DIGITS, JUDGES, Measure
from tools.study.products import Sums, sums_of

BY_NAME = {judge.name: judge for judge in JUDGES}


def accepts(judge: str, should: Tensor, got: Tensor, sums: Sums | None = None) -> bool:
    """Whether that judge accepts `got` where the rounded reference is `should`."""
    known = {"y": sums or Sums(1, should.double().abs())}
    return not BY_NAME[judge].rejects(Measure(should.dtype, {}, {"y": should}, {"y": should}, known), {"y": got})


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize(("judge", "most"), [("4 ULP", 4), ("16 ULP", 16)])
def test_ulps_are_counted_in_units_of_the_dtype(judge: str, most: int, dtype: torch.dtype) -> None:
    eps = torch.finfo(dtype).eps
    for scale in (1.0, 0.125, -4.0):
        should = torch.full((3,), scale, dtype=dtype)
        for ulps, right in ((most, True), (most + 1, False)):
            got = should.clone()
            got[1] *= 1 + ulps * eps
            assert accepts(judge, should, got) == right
    zero = torch.zeros(1, dtype=torch.float64)
    assert not accepts(judge, zero, zero + 1e-300), "at 0 a unit is that of the smallest numbers"


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_digits_are_those_of_each_element(dtype: torch.dtype) -> None:
    least = 10.0 ** -(DECIMAL_DIGITS[dtype] - 1)
    should = torch.tensor([1.0, -0.5], dtype=dtype)
    for share, right in ((0.8, True), (1.2, False)):
        assert accepts("digits", should, (should.double() * (1 + share * least)).to(dtype)) == right
    zero = torch.zeros(1, dtype=dtype)
    assert accepts("digits", zero, zero + least / 2)
    assert not accepts("digits", zero, zero + 2 * least)


def test_decimal_digits_are_those_that_survive() -> None:
    """A number of d digits is found again after rounding if 10^d < 2^(p - 1)."""
    for dtype, digits in DECIMAL_DIGITS.items():
        assert digits == math.floor(math.log10(1 / torch.finfo(dtype).eps)), dtype


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_the_bound_of_blas_is_that_of_its_testers(dtype: torch.dtype) -> None:
    """||C - C_ref||_F <= sqrt(k + 2) u ||A||_F ||B||_F, with 7 for both norms together."""
    should, k = torch.zeros(2, 2, dtype=torch.float64), 14
    sums = Sums(k, torch.full((2, 2), 3.5, dtype=torch.float64))
    bound = 4 * 7 * UNIT_ROUNDOFF[dtype]
    for share, right in ((0.99, True), (1.01, False)):
        error = torch.tensor([[0.6, 0.0], [0.0, 0.8]], dtype=torch.float64) * share * bound
        measure = Measure(dtype, {}, {"y": should}, {}, {"y": sums})
        assert BY_NAME["BLAS++"].accepts(measure, "y", should + error) == right


@pytest.mark.parametrize("judge", ["BLAS++", "4 ULP", "16 ULP", "digits"])
def test_what_is_no_number_must_be_the_same(judge: str) -> None:
    should = torch.tensor([1.0, math.nan, math.inf, -math.inf])
    assert accepts(judge, should, should.clone())
    for place, wrong in ((0, math.nan), (0, math.inf), (1, 1.0), (2, -math.inf), (2, 3.0), (3, math.nan)):
        got = should.clone()
        got[place] = wrong
        assert not accepts(judge, should, got), (place, wrong)


def _case(name: str) -> tuple[Call, dict[str, Sums], dict[str, Tensor]]:
    contract = operator(name)
    call = realise(contract, smallest(contract), torch.float64)
    names = [*(arg.name for arg in contract.outputs), *(f"gradient of {arg.name}" for arg in contract.inputs)]
    return call, sums_of(contract, call), dict(zip(names, evaluate(contract, call), strict=True))


def test_a_product_has_the_norms_of_its_factors() -> None:
    call, sums, _ = _case("mlp")
    (g,), hidden = call.cotangents, operator("mlp").intermediates(*call.inputs)["hidden"]
    assert g is not None
    assert float(sums["gradient of output_weights"].magnitude.norm()) == pytest.approx(float(g.norm() * hidden.norm()))
    assert sums["gradient of output_bias"].k == len(g)
    ones = math.sqrt(len(g))
    assert float(sums["gradient of output_bias"].magnitude.norm()) == pytest.approx(float(g.norm()) * ones)


def test_part_of_a_product_has_its_own_norms() -> None:
    """The gradients of input and old_h are parts of d_gates @ weights."""
    call, sums, results = _case("lltm")
    _, weights, _, old_h, _ = call.inputs
    parts = sums["gradient of input"].magnitude, sums["gradient of old_h"].magnitude
    columns = weights.split([old_h.shape[1], weights.shape[1] - old_h.shape[1]], dim=1)
    ratio = float(parts[0].norm() / columns[1].norm())
    assert float(parts[1].norm() / columns[0].norm()) == pytest.approx(ratio)
    assert sums["gradient of input"].k == weights.shape[0]
    assert torch.equal(sums["new_h"].magnitude, results["new_h"].abs())


@pytest.mark.parametrize(
    ("name", "result", "k"),
    [
        ("lltm", "new_cell", lambda s: s["input_features"] + s["state_size"]),
        ("mlp", "output", lambda s: max(s["input_features"], s["hidden_size"])),
        ("layer_norm", "output", lambda s: s["features"]),
        ("layer_norm", "gradient of bias", lambda s: s["batch"]),
        ("lltm_sequence", "gradient of bias", lambda s: s["steps"] * s["batch"]),
    ],
)
def test_k_is_the_longest_sum(name: str, result: str, k: object) -> None:
    contract = operator(name)
    scenario = ordinary(contract)[-1]
    assert callable(k)
    assert sums_of(contract, realise(contract, scenario, torch.float64))[result].k == k(dict(scenario.sizes))


@pytest.mark.parametrize("name", ["lltm", "mlp", "layer_norm", "lltm_sequence"])
def test_magnitudes_are_at_least_the_values(name: str) -> None:
    _, sums, results = _case(name)
    for result, value in results.items():
        assert sums[result].magnitude.shape == value.shape
        assert bool((sums[result].magnitude >= value.abs() * (1 - 1e-12)).all()), result
