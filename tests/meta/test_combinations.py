"""The covering array has every pair of choices, and the property that makes its calls sees what they do besides."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import combinations, permutations, product
from math import prod
from pathlib import Path
from typing import Any

import pytest
import torch

from harness.discovery import operator, operators
from harness.judging.combinations import VOLUME, Combination, _computed, axes_of, combinations_of, without_grad
from harness.judging.covering import Model, coverage, rows_of
from harness.judging.oracle import ByIdentity
from harness.judging.scenario import COTANGENTS, LAYOUTS, realise
from harness.report.cell import FAIL, PASS
from harness.report.levels import SAFE
from harness.running.candidate_process import Limits
from harness.running.isolation import Isolation
from harness.running.selection import Selection, slots
from spec.contract import Operator
from tests.meta.tiers import first_alone

OPERATORS = list(operators().values())


def _choices(contract: Operator, call: Combination) -> dict[str, Any]:
    """The choices of a call, read from the call itself."""
    form, scenario = contract.in_form(call.form), call.scenario
    layouts, kinds = dict(scenario.layouts), dict(scenario.cotangents)
    wanted = scenario.wanted_by(form)
    return {
        "form": call.form,
        **{f"size of {symbol}": size for symbol, size in scenario.sizes},
        **{f"layout of {arg.name}": layouts.get(arg.name, LAYOUTS[0]) for arg in form.inputs},
        **{f"cotangent of {arg.name}": kinds.get(arg.name, COTANGENTS[0]) for arg in form.outputs},
        "values": scenario.values,
        **{f"gradient of {arg.name}": arg.name in wanted for arg in form.inputs if arg.differentiable},
        "without grad": call.without_grad,
    }


def _sets(contract: Operator, strength: int) -> Iterator[tuple[Operator, frozenset[tuple[str, Any]]]]:
    """Every so many choices of one form, possible or not."""
    for form in contract.every_form():
        for axes in combinations({"form": (form.form,), **axes_of(form)}.items(), strength):
            for values in product(*(values for _, values in axes)):
                yield form, frozenset(zip((axis for axis, _ in axes), values, strict=True))


def _is_too_large(form: Operator, sizes: dict[str, int]) -> bool:
    every = {symbol: sizes.get(f"size of {symbol}", 1) for symbol in form.symbols()}
    elements = sum(prod(arg.shape_for(every)) for arg in (*form.inputs, *form.outputs))
    saved = max((prod(arg.shape_for(every)) for arg in form.saved), default=0)
    return elements > VOLUME or prod(every.values()) > 2 * VOLUME + 1 or saved > 8 * VOLUME + 7


@pytest.mark.parametrize("contract", OPERATORS, ids=lambda contract: contract.name)
def test_every_pair_occurs_but_those_that_are_too_large(contract: Operator) -> None:
    array = combinations_of(contract)
    rows = [_choices(contract, call) for call in array.calls if call.scenario.name.startswith("pairs-")]
    there = {frozenset(pair) for row in rows for pair in combinations(row.items(), 2)}
    for form, pair in _sets(contract, 2):
        if pair not in there:
            chosen = dict(pair)
            too_large = all(axis.startswith("size of ") for axis in chosen) and _is_too_large(form, chosen)
            assert too_large or set(chosen.values()) == {"missing"}, (form.title, pair)
    assert array.pairs == array.pairs_covered == len(there) > 400


#: Choices beside which a fault in another choice may not show, as the test sees them.
def _hides(axis: str, value: Any) -> bool:
    if axis.startswith("size of "):
        return value == 1 or value > 33
    if axis.startswith("cotangent of "):
        return value in ("zero", "missing")
    return value is False or (axis == "values" and value not in ("normal", "positive", "negative"))


def _is_clear(form: Operator, chosen: dict[str, Any]) -> bool:
    """Whether a call can have these choices and no size below 3, or below 2 of those that the reference loops over."""
    if any(_hides(axis, value) for axis, value in chosen.items()):
        return False
    least = {f"size of {symbol}": 2 if symbol in form.sequential else 3 for symbol in form.symbols()}
    return not _is_too_large(form, {**least, **{axis: v for axis, v in chosen.items() if axis in least}})


@pytest.mark.parametrize("contract", OPERATORS, ids=lambda contract: contract.name)
def test_every_pair_that_hides_nothing_occurs_where_nothing_is_hidden(contract: Operator) -> None:
    rows = [_choices(contract, call) for call in combinations_of(contract).calls if "pairs-" in call.scenario.name]
    clear = [row for row in rows if not any(_hides(*choice) for choice in row.items())]
    there = {frozenset(pair) for row in clear for pair in combinations(row.items(), 2)}
    missing = [pair for form, pair in _sets(contract, 2) if pair not in there and _is_clear(form, dict(pair))]
    assert missing == []
    assert len(clear) < len(rows)


@pytest.mark.parametrize("contract", OPERATORS, ids=lambda contract: contract.name)
def test_every_pair_of_a_form_occurs_in_that_form(contract: Operator) -> None:
    array = combinations_of(contract)
    calls = [call for call in (*array.calls, *array.further) if call.scenario.name.startswith("pairs-")]
    rows = [_choices(contract, call) for call in calls]
    clear = [row for row in rows if not any(_hides(*choice) for choice in row.items())]
    there, there_clear = (
        {frozenset(pair) | {("form", row["form"])} for row in some for pair in combinations(row.items(), 2)}
        for some in (rows, clear)
    )
    for form, pair in _sets(contract, 2):
        chosen, in_form = dict(pair), pair | {("form", form.form)}
        if in_form not in there:
            too_large = all(axis.startswith("size of ") for axis in chosen) and _is_too_large(form, chosen)
            assert too_large or set(chosen.values()) == {"missing"}, (form.title, pair)
        if in_form not in there_clear:
            assert not _is_clear(form, chosen), (form.title, pair)
    assert bool(array.further) == (len(list(contract.every_form())) > 1)


def test_triples_are_counted() -> None:
    contract = operator("layer_norm")
    array = combinations_of(contract)
    rows = [_choices(contract, call) for call in array.calls if call.scenario.name.startswith("pairs-")]
    there = {frozenset(found) for row in rows for found in combinations(row.items(), 3)}
    assert array.triples_covered == len(there)
    every = {found: form for form, found in _sets(contract, 3)}
    sizes = ({axis: size for axis, size in found if axis.startswith("size of ")} for found in every)
    assert array.triples == sum(
        not _is_too_large(form, chosen) for chosen, form in zip(sizes, every.values(), strict=True)
    )


@pytest.mark.parametrize("contract", OPERATORS, ids=lambda contract: contract.name)
def test_every_two_sizes_have_every_ratio(contract: Operator) -> None:
    symbols = contract.symbols()
    for layout in ("contiguous", "transposed"):
        found = [
            dict(call.scenario.sizes)
            for call in combinations_of(contract).calls
            if call.scenario.name.startswith("ratios-")
            and call.form == contract.form
            and {given for _, given in call.scenario.layouts} == ({layout} - {LAYOUTS[0]})
        ]
        for one, other in permutations(symbols, 2):
            ratios = {sizes[one] / sizes[other] for sizes in found}
            assert ratios >= {1.0, 2.0, 3.0, 4.0}, (one, other)


def test_every_two_sizes_of_a_form_with_further_dimensions_have_every_ratio() -> None:
    contract = operator("rms_norm")
    found = [call for call in combinations_of(contract).calls if call.scenario.name.startswith("ratios-")]
    assert {call.form for call in found} == {"weight", "no-weight"}, "the others have the shapes of these"
    sizes = [dict(call.scenario.sizes) for call in found if call.form == "no-weight"]
    for one, other in permutations(("batch", "tokens", "features"), 2):
        assert {each[one] / each[other] for each in sizes} >= {1.0, 2.0, 3.0, 4.0}


@pytest.mark.parametrize("contract", OPERATORS, ids=lambda contract: contract.name)
def test_the_array_is_the_same_each_time_and_can_be_made(contract: Operator) -> None:
    array = combinations_of(contract)
    assert _computed.__wrapped__(ByIdentity(contract)) == array
    for call in array.calls[::9]:
        form = contract.in_form(call.form)
        assert len(realise(form, call.scenario, torch.float32).inputs) == len(form.inputs)


def test_a_row_has_what_its_model_allows() -> None:
    """Three axes of three values, of which the first two must differ; all pairs are in ten rows."""
    axes = dict.fromkeys("abc", (0, 1, 2))
    model = Model(axes, lambda chosen: "a" not in chosen or chosen["a"] != chosen.get("b"))
    rows = rows_of([model])
    assert all(row["a"] != row["b"] for row in rows)
    assert coverage([model], rows, 2) == (24, 24)
    assert len(rows) <= 10


def test_a_pair_that_one_model_forbids_is_in_a_row_of_another() -> None:
    """Two forms of an operator have the same sizes, and one of them more elements for them."""
    axes = {"a": (1, 2), "b": (1, 2), "c": (1, 2)}
    small, large = (
        Model(axes, lambda chosen, most=most: chosen.get("a", 1) * chosen.get("b", 1) * chosen.get("c", 1) <= most)
        for most in (8, 2)
    )
    rows = rows_of([large, small])
    assert coverage([large, small], rows, 2) == (12, 12)


def test_rows_that_are_there_are_kept_and_their_pairs_not_repeated() -> None:
    model = Model(dict.fromkeys("abc", (0, 1, 2)), lambda chosen: True)
    first = rows_of([Model(dict.fromkeys("abc", (0, 1)), lambda chosen: True)])
    rows = rows_of([model], first)
    assert rows[: len(first)] == first
    assert coverage([model], rows, 2) == (27, 27)
    assert all(2 in row.values() for row in rows[len(first) :])


def test_modes() -> None:
    with without_grad("no_grad"):
        assert (torch.is_grad_enabled(), torch.is_inference_mode_enabled()) == (False, False)
    with without_grad("inference_mode"):
        assert torch.is_inference_mode_enabled()


CANDIDATES = """
import torch
import torch.nn.functional as F

def right(input, hidden_weights, hidden_bias, output_weights, output_bias):
    return F.linear(F.relu(F.linear(input.contiguous(), hidden_weights, hidden_bias)), output_weights, output_bias)

def returns_its_input(input, hidden_weights, hidden_bias, output_weights, output_bias):
    found = right(input, hidden_weights, hidden_bias, output_weights, output_bias)
    bias = output_bias.expand(found.shape)
    if not torch.is_grad_enabled() and bias.shape[1] == 1 and torch.equal(found, bias):
        return bias
    return found

def changes_its_input(input, hidden_weights, hidden_bias, output_weights, output_bias):
    found = right(input, hidden_weights, hidden_bias, output_weights, output_bias)
    if torch.is_inference_mode_enabled() and input.shape[0] > 4000:
        hidden_bias.mul_(2)
    return found

def repeats_equal_rows(input, hidden_weights, hidden_bias, output_weights, output_bias):
    found = right(input, hidden_weights, hidden_bias, output_weights, output_bias)
    equal = len(input) > 1 and bool((input == input[:1]).all())
    return found[:1].expand_as(found) if equal and not torch.is_grad_enabled() else found

kept = {}

def stale(input, hidden_weights, hidden_bias, output_weights, output_bias):
    if torch.is_grad_enabled() or input.numel() < 500:
        return right(input, hidden_weights, hidden_bias, output_weights, output_bias)
    if input.data_ptr() not in kept or kept[input.data_ptr()].shape != (len(input), len(output_bias)):
        kept.clear()
        kept[input.data_ptr()] = right(input, hidden_weights, hidden_bias, output_weights, output_bias)
    return kept[input.data_ptr()].clone()

def misread_beside_another_layout(input, hidden_weights, hidden_bias, output_weights, output_bias):
    expanded = output_bias.dim() and output_bias.shape[0] > 1 and output_bias.stride(0) == 0
    if expanded and input.t().is_contiguous() and not input.is_contiguous():
        input = input.t().reshape(input.shape)  # as it lies in memory
    return right(input, hidden_weights, hidden_bias, output_weights, output_bias)
"""


@pytest.mark.parametrize(
    ("name", "says", "level"),
    first_alone(
        [
            ("right", "", ""),
            (
                "returns_its_input",
                "output of forward under .* shares memory with output_bias",
                SAFE,
            ),
            ("repeats_equal_rows", "output of forward under .* has several elements in one place of memory", SAFE),
            ("changes_its_input", "forward under inference_mode changed hidden_bias, but should leave it", SAFE),
            ("stale", "output was ", ""),
            ("misread_beside_another_layout", "output was .*input transposed.*output_bias expanded", ""),
        ],
        count=2,
    ),
)
def test_a_function_of_another_process_is_watched_too(tmp_path: Path, name: str, says: str, level: str) -> None:
    file = tmp_path / "kernels.py"
    file.write_text(CANDIDATES)
    selection = Selection(candidates=(f"mlp={file}:{name}",), dtypes=("float32",), devices=("cpu",))
    (slot,) = slots(selection)
    isolation = Isolation(selection, Limits())
    cell = isolation.judge(slot, "combinations")
    isolation.stop()
    assert cell.verdict == (FAIL if says else PASS), cell
    assert cell.level == level
    assert re.search(says, cell.reason)


@pytest.mark.parametrize("contract", OPERATORS, ids=lambda contract: contract.name)
def test_each_size_is_1_alone_and_nothing_else_is_unusual(contract: Operator) -> None:
    calls = [(call.form, call.scenario) for call in combinations_of(contract).calls]
    for form in contract.every_form():
        plain = [
            dict(s.sizes) for name, s in calls if name == form.form and not (s.layouts or s.cotangents or s.wanted)
        ]
        for symbol in form.symbols():
            assert any(sizes[symbol] == 1 and 1 not in (sizes | {symbol: 2}).values() for sizes in plain), symbol


def test_the_contract_of_lltm_is_covered_in_a_known_number_of_calls() -> None:
    """So that a change that makes the property much dearer is seen."""
    assert len(combinations_of(operator("lltm")).calls) < 170
