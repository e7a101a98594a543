"""The covering array has every pair of choices, and the property that makes its calls sees what they do besides."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import combinations, product
from math import prod
from pathlib import Path
from typing import Any

import pytest
import torch

from harness.discovery import operator, operators
from harness.judging.combinations import VOLUME, Combination, _computed, axes_of, combinations_of, without_grad
from harness.judging.oracle import ByIdentity
from harness.judging.scenario import COTANGENTS, LAYOUTS, realise
from harness.report.cell import FAIL, PASS
from harness.report.levels import SAFE
from harness.running.candidate_process import Limits
from harness.running.isolation import Isolation
from harness.running.selection import Selection, slots
from spec.contract import Operator

FORMS = [form for found in operators().values() for form in found.every_form()]


def _choices(contract: Operator, call: Combination) -> dict[str, Any]:
    """The choices of a call, read from the call itself."""
    scenario = call.scenario
    layouts, kinds = dict(scenario.layouts), dict(scenario.cotangents)
    return {
        **{f"size of {symbol}": size for symbol, size in scenario.sizes},
        **{f"layout of {arg.name}": layouts.get(arg.name, LAYOUTS[0]) for arg in contract.inputs},
        **{f"cotangent of {arg.name}": kinds.get(arg.name, COTANGENTS[0]) for arg in contract.outputs},
        "values": scenario.values,
        **{
            f"gradient of {arg.name}": arg.name in scenario.wanted_by(contract)
            for arg in contract.inputs
            if arg.differentiable
        },
        "without grad": call.without_grad,
    }


def _pairs(contract: Operator) -> Iterator[tuple[tuple[str, Any], tuple[str, Any]]]:
    for one, other in combinations(axes_of(contract).items(), 2):
        for value, another in product(one[1], other[1]):
            yield (one[0], value), (other[0], another)


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.title)
def test_every_pair_occurs_but_those_that_are_too_large(form: Operator) -> None:
    array = combinations_of(form)
    there = {pair for call in array.calls for pair in combinations(_choices(form, call).items(), 2)}
    absent = [dict(pair) for pair in _pairs(form) if pair not in there]
    for pair in absent:
        too_large = all(axis.startswith("size of ") for axis in pair)
        nothing_used = set(pair.values()) == {"missing"}
        assert too_large or nothing_used, pair
        if too_large:
            sizes = {axis.removeprefix("size of "): size for axis, size in pair.items()}
            every = {symbol: sizes.get(symbol, 1) for symbol in form.symbols()}
            elements = sum(prod(arg.shape_for(every)) for arg in (*form.inputs, *form.outputs))
            assert elements > VOLUME or prod(sizes.values()) > 2 * VOLUME, pair
    assert array.covered == array.feasible == sum(1 for _ in _pairs(form)) - len(absent)
    assert array.covered > 500


@pytest.mark.parametrize("form", FORMS[:1] + FORMS[-1:], ids=lambda form: form.title)
def test_the_array_is_the_same_each_time_and_can_be_made(form: Operator) -> None:
    array = combinations_of(form)
    assert _computed.__wrapped__(ByIdentity(form)) == array
    for call in array.calls[::9]:
        assert len(realise(form, call.scenario, torch.float32).inputs) == len(form.inputs)


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

kept = {}

def stale(input, hidden_weights, hidden_bias, output_weights, output_bias):
    if torch.is_grad_enabled() or input.numel() < 500:
        return right(input, hidden_weights, hidden_bias, output_weights, output_bias)
    if input.data_ptr() not in kept or kept[input.data_ptr()].shape != (len(input), len(output_bias)):
        kept.clear()
        kept[input.data_ptr()] = right(input, hidden_weights, hidden_bias, output_weights, output_bias)
    return kept[input.data_ptr()].clone()
"""


@pytest.mark.parametrize(
    ("name", "says", "level"),
    [
        ("right", "", ""),
        (
            "returns_its_input",
            "output of forward under .* shares memory with output_bias",
            SAFE,
        ),
        ("changes_its_input", "forward under inference_mode changed hidden_bias, but should leave it", SAFE),
        ("stale", "output was ", ""),
    ],
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


def test_the_contract_of_lltm_is_covered_in_a_known_number_of_calls() -> None:
    """So that a change that makes the property much dearer is seen."""
    assert len(combinations_of(operator("lltm")).calls) < 250
