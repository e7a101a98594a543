"""Outputs of integers and truth values, and float32 outputs beside half ones: derived, judged, told apart."""

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
from harness.judging import stored
from harness.judging.compare import compare, has_evidence
from harness.judging.judge import judge
from harness.judging.oracle import expected, forget
from harness.judging.scenario import Scenario, realise
from harness.judging.scenarios import smallest
from harness.judging.subject import Subject
from harness.properties import all_properties
from harness.report.cell import FAIL, NOT_RUN, PASS
from spec.contract import DTYPES, TensorArg
from spec.envelope import discrete_envelope
from tests.meta.deriving import discrete

#: Judged in every dtype: what finds most for least.
QUICK = ("forward-parity", "vjp-parity", "layouts", "invariants")
#: Judged in one dtype: each treats a discrete output apart.
OTHERS = (
    "autograd-hooks",
    "compile",
    "determinism",
    "export",
    "fake-tensors",
    "inference-modes",
    "memory",
    "no-side-effects",
    "raw-backward",
    "repeated-backward",
    "uninitialised-memory",
)
#: Of numbers that rounding moves: properties that ask little of them in half types.
IN_EVERY_DTYPE = (
    "concurrent-threads",
    "gradient-subsets",
    "inference-modes",
    "no-special-treatment",
    "repeated-backward",
    "sizes",
    "uninitialised-memory",
    "wide-offsets",
)


@cache
def derived(reference: Callable[..., Any]) -> Derived:
    torch.manual_seed(0)
    return derive_from(reference, (torch.randn(*discrete.SHAPE),))


def cell(
    reference: Callable[..., Any], function: Callable[..., Any], name: str, dtype: torch.dtype = torch.float32
) -> Any:
    return judge(Subject(derived(reference).operator, "it", "cpu", dtype, function), all_properties()[name])


def test_dtypes_of_outputs_are_found_and_read_back(tmp_path: Path) -> None:
    found = derived(discrete.quantise)
    numbers, scale = found.operator.outputs
    assert (numbers.dtype, numbers.differentiable, scale.wide, found.operator.dtypes) == (
        torch.int8,
        False,
        True,
        DTYPES,
    )
    text = source(found, tmp_path)
    assert "output_0 exactly, of 12 of 12 elements" in text
    assert "output_0 must be exactly right wherever rounding does not decide what it is" in text
    path = tmp_path / "contract.py"
    path.write_text(text.replace("function_of('',", f"function_of({discrete.__file__!r},"))
    read = discovery.import_file(path, "discrete_contract").OPERATOR
    assert read.outputs == found.operator.outputs


def test_without_real_outputs_there_is_no_gradient() -> None:
    operator = derived(discrete.largest).operator
    assert not operator.has_gradient
    for name in ("vjp-parity", "gradcheck", "double-backward"):
        found = cell(discrete.largest, discrete.last_largest, name, torch.float64)
        assert found.verdict == NOT_RUN
        assert found.reason.startswith("no gradient is asked of largest")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("reference", discrete.RIGHT)
def test_what_is_right_in_another_way_passes(reference: Callable[..., Any], dtype: torch.dtype) -> None:
    for name in QUICK:
        found = cell(reference, discrete.RIGHT[reference], name, dtype)
        assert found.verdict in (PASS, NOT_RUN), found.reason


@pytest.mark.parametrize("name", OTHERS)
def test_other_properties_take_discrete_outputs(name: str) -> None:
    for reference in (discrete.positive, discrete.largest):
        found = cell(reference, discrete.RIGHT[reference], name)
        assert found.verdict in (PASS, NOT_RUN), found.reason


@pytest.mark.parametrize("name", ["gradcheck", "double-backward", "functional-transforms"])
def test_differentiation_leaves_discrete_outputs_out(name: str) -> None:
    found = cell(discrete.attend, discrete.attend_by_parts, name, torch.float64)
    assert found.verdict == PASS, found.reason
    found = cell(discrete.positive, discrete.positive_by_sign, name, torch.float64)
    assert found.verdict == PASS or found.reason.startswith("every second derivative is 0"), found.reason


@pytest.mark.parametrize(("reference", "function", "says"), discrete.WRONG, ids=lambda it: getattr(it, "__name__", ""))
def test_what_is_wrong_fails(reference: Callable[..., Any], function: Callable[..., Any], says: str) -> None:
    dtype = torch.float16 if function is discrete.real_mask else torch.float32
    found = cell(reference, function, "forward-parity", dtype)
    if found.verdict == PASS:  # wrong in large calls alone
        found = cell(reference, function, "sizes", dtype)
    assert found.verdict == FAIL
    assert re.search(says, found.reason), found.reason


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_numbers_of_8_bits_may_move_as_far_as_rounding_moves_them(dtype: torch.dtype) -> None:
    reference = discrete.quantise_in_its_dtype
    for name in IN_EVERY_DTYPE:
        found = cell(reference, discrete.quantise_in_float32, name, dtype)
        assert found.verdict in (PASS, NOT_RUN), found.reason
    for wrong in (discrete.six_percent_less, discrete.cut_at_118):
        found = cell(reference, wrong, "repeated-backward", dtype)
        assert found.verdict == FAIL, wrong.__name__
    found = cell(reference, discrete.zeros_for_inference, "inference-modes", dtype)
    assert re.search(r"under inference_mode: output_0 was 0 at \(0, \d\), but should be -?\d+", found.reason)


def test_a_float32_output_beside_a_half_one_is_judged_as_float32() -> None:
    """Of the half type, or with its digits alone: neither passes."""
    found = cell(discrete.quantise, discrete.narrow_scale, "forward-parity", torch.float16)
    assert "dtype of output_1 was torch.float16, but should be torch.float32" in found.reason
    found = cell(discrete.attend, discrete.denominator_in_half, "forward-parity", torch.float16)
    assert found.verdict == FAIL
    assert found.reason.startswith("output_1 was ")


def test_ties_are_not_decided_and_all_else_is() -> None:
    operator = derived(discrete.largest).operator
    scenario = smallest(operator)
    assert bool(expected(operator, scenario, torch.float16).outputs["output"].usable.all())
    tied = Scenario(scenario.sizes, values="zero-rows")
    envelope = expected(operator, tied, torch.float32).outputs["output"]
    assert envelope.usable.tolist() == [False, True, False]
    anything = torch.where(envelope.usable, envelope.exact, 3)
    assert compare(anything, envelope).holds
    assert not compare(anything + 1, envelope).holds


def test_a_comparison_of_inputs_is_decided_at_equality() -> None:
    operator = derived(discrete.positive).operator
    envelope = expected(operator, Scenario(smallest(operator).sizes, values="sparse-values"), torch.bfloat16)
    assert bool(envelope.outputs["output_1"].usable.all())


def test_nothing_is_asked_of_rows_that_are_not_finite() -> None:
    operator = derived(discrete.largest).operator
    scenario = Scenario(tuple({**dict(smallest(operator).sizes), "batch": 5}.items()), values="non-finite")
    envelope = expected(operator, scenario, torch.float32).outputs["output"]
    assert envelope.usable.tolist() == [False, False, False, True, True]


def test_evidence_needs_most_elements_decided() -> None:
    exact = torch.arange(1, 5)
    assert has_evidence(discrete_envelope(exact, [exact]))
    assert not has_evidence(discrete_envelope(exact, [exact, torch.tensor([1, 0, 0, 0])]))
    assert not has_evidence(discrete_envelope(torch.zeros(4, dtype=torch.bool), []))


def _numbers(*values: int, dtype: torch.dtype = torch.int8) -> Tensor:
    return torch.tensor(values, dtype=dtype)


def test_a_number_that_rounding_moves_has_an_allowance() -> None:
    envelope = discrete_envelope(_numbers(100, 3, -127), [_numbers(104, 3, -124)])
    assert envelope.sigma.tolist() == [4, 0, 3]
    assert compare(_numbers(97, 3, -127), envelope).holds
    for wrong in (_numbers(95, 3, -127), _numbers(100, 4, -127), _numbers(100, 3, 127)):
        assert not compare(wrong, envelope).holds
    assert discrete_envelope(_numbers(100, 3), [_numbers(109, 4)]).usable.tolist() == [False, True]
    index = discrete_envelope(_numbers(100, 3, dtype=torch.int64), [_numbers(104, 3, dtype=torch.int64)])
    assert index.usable.tolist() == [False, True], "an index has no neighbours"
    beyond = _numbers(2**53, dtype=torch.int64)
    assert not compare(beyond + 1, discrete_envelope(beyond, [])).holds, "float64 has no such number"


def test_numbers_that_rounding_moves_by_10_percent_are_no_evidence() -> None:
    exact = _numbers(60, -80, 70)
    assert has_evidence(discrete_envelope(exact, [exact - 7]))
    assert not has_evidence(discrete_envelope(exact, [exact - 8]))


def test_the_store_keeps_discrete_envelopes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    operator = derived(discrete.quantise_in_its_dtype).operator
    monkeypatch.setattr(stored, "_suite_of", lambda _: "suite")
    scenario = smallest(operator)
    with stored.used(tmp_path):
        found = []
        for _ in range(2):
            forget()
            found.append(expected(operator, scenario, torch.float16).outputs)
    forget()
    assert len(list(tmp_path.rglob("*.expected"))) == 1
    for first, second in zip(found[0].values(), found[1].values(), strict=True):
        assert first.dtype == second.dtype
        assert first.exact.dtype == second.exact.dtype
        assert torch.equal(first.exact, second.exact)
        assert torch.equal(first.usable, second.usable)
        assert torch.equal(first.sigma, second.sigma)
    numbers, scale = found[1].values()
    assert (numbers.dtype, scale.dtype) == (torch.int8, torch.float16)
    assert bool(numbers.sigma.any())


def test_a_discrete_output_has_no_cotangent() -> None:
    operator = derived(discrete.quantise).operator
    numbers, scale = realise(operator, smallest(operator), torch.float16).cotangents
    assert numbers is None
    assert scale is not None
    assert scale.dtype == torch.float32


def test_integers_of_one_dtype_alone() -> None:
    def varies(x: Tensor) -> Tensor:
        return x.argmax(-1).to(torch.int32 if x.dtype == torch.float16 else torch.int64)

    with pytest.raises(UsageError, match="returned output in int32 and int64, but should return it in one dtype"):
        derive_from(varies, (torch.randn(4, 6),))


def test_what_a_contract_cannot_say() -> None:
    with pytest.raises(ValueError, match=r"scale was wide and of dtype torch\.float32, but should be one of the two"):
        TensorArg("scale", ("batch",), wide=True, dtype=torch.float32)
