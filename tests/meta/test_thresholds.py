"""The drawn faults of tests/zoo/thresholds: each is wrong at its witness, and its honest twin is right there."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import replace
from random import Random
from typing import Any

import pytest
import torch

from harness.discovery import operators
from harness.judging import oracle
from harness.judging.judge import judge as judge_property
from harness.judging.scenario import Scenario
from harness.judging.subject import Subject
from harness.properties import all_properties
from harness.report.cell import FAIL, PASS
from tests.meta.conftest import Run
from tests.meta.tiers import WHOLE, ZOO, first_alone, first_of_each
from tests.zoo.thresholds import judge, screening
from tests.zoo.thresholds.draw import EACH, KINDS, draw
from tests.zoo.thresholds.drawn import Drawn, Witness
from tests.zoo.thresholds.every import draw as every
from tests.zoo.thresholds.every.conditions import of_values
from tests.zoo.thresholds.every.draw import draw_of_every_operator
from tests.zoo.thresholds.every.form import forms_of
from tests.zoo.thresholds.facts import FACTS
from tests.zoo.thresholds.loading import loaded
from tests.zoo.thresholds.observing import differs, errors

_DRAWN = draw(0)


def test_a_seed_gives_the_same_faults() -> None:
    assert draw(0) == _DRAWN
    assert draw(1) != _DRAWN


def test_there_are_faults_of_every_class_for_every_operator() -> None:
    there = Counter((drawn.kind, drawn.operator) for drawn in _DRAWN)
    assert there == {(kind, operator): EACH for kind in KINDS for operator in FACTS}
    assert len(KINDS) == 12
    assert len(_DRAWN) >= 72


def test_no_two_faults_are_alike() -> None:
    assert len({drawn.source for drawn in _DRAWN}) == len(_DRAWN)


def _id(drawn: Drawn) -> str:
    return f"{_DRAWN.index(drawn)}-{drawn.kind}-{drawn.operator}-{drawn.variant}"


_MARKED = [
    pytest.param(drawn, id=_id(drawn), marks=marks)
    for drawn, marks in first_of_each(_DRAWN, lambda drawn: [(drawn.kind, drawn.operator)])
]


@pytest.mark.parametrize("drawn", _MARKED)
def test_fault_is_wrong_at_its_witness_and_its_twin_is_right(drawn: Drawn) -> None:
    with loaded(drawn.operator, drawn.source) as fault, loaded(drawn.operator, drawn.honest) as honest:
        assert not errors(drawn, honest), f"the honest twin is wrong: {drawn.words}"
        assert differs(drawn, fault, honest), f"the fault is right: {drawn.words}"


@pytest.fixture(scope="module")
def drawn_of_every() -> dict[str, list[Drawn]]:
    """By operator. Not at import, which every worker does: each fault is called while it is drawn, 10 s in all."""
    found: dict[str, list[Drawn]] = defaultdict(list)
    for drawn in draw_of_every_operator(0):
        found[drawn.operator].append(drawn)
    return found


def test_there_are_faults_of_every_operator_and_as_many_of_each_class(drawn_of_every: dict[str, list[Drawn]]) -> None:
    assert {name: len(faults) for name, faults in drawn_of_every.items()} == dict.fromkeys(operators(), every.EACH)
    faults = [drawn for of_one in drawn_of_every.values() for drawn in of_one]
    classes = Counter(drawn.kind for drawn in faults)
    assert set(classes) == set(KINDS)
    assert max(classes.values()) <= min(classes.values()) + 2
    assert len({drawn.source for drawn in faults}) == len(faults) >= 60


def test_a_seed_gives_the_same_faults_of_every_operator(monkeypatch: pytest.MonkeyPatch) -> None:
    few = {name: operators()[name] for name in ("softmax", "embedding")}
    monkeypatch.setattr(every, "operators", lambda: few)
    assert draw_of_every_operator(0) == draw_of_every_operator(0) != draw_of_every_operator(1)


@pytest.mark.parametrize("name", operators())
@pytest.mark.parametrize("number", first_alone(range(every.EACH), ZOO))
def test_fault_of_any_operator_is_wrong_at_its_witness_and_its_twin_is_right(
    name: str, number: int, drawn_of_every: dict[str, list[Drawn]]
) -> None:
    drawn = drawn_of_every[name][number]
    with loaded(drawn.operator, drawn.source) as fault, loaded(drawn.operator, drawn.honest) as honest:
        assert not errors(drawn, honest)
        assert differs(drawn, fault, honest)


def test_values_that_no_call_may_have_are_not_drawn(drawn_of_every: dict[str, list[Drawn]]) -> None:
    """More labels than classes, each another number."""
    drawn = next(each for each in drawn_of_every["cross_entropy"] if each.witness.sees == "results")
    sizes, values = {"batch": 16, "classes": 8}, (("labels", "distinct", 0.0),)
    witness = replace(drawn.witness, sizes=sizes, values=values, layouts={}, changed=())
    assert not every._shows(replace(drawn, witness=witness))


def test_a_witness_whose_reference_needs_much_memory_is_not_drawn() -> None:
    form = next(form for form in forms_of("attention_varlen") if form.contract.form == "grouped")
    sizes = {"heads": 8, "width": 4, "sequences": 4}
    assert every._fits({**sizes, "tokens": 900}, form)
    assert not every._fits({**sizes, "tokens": 2399}, form)


def test_values_of_a_range_stay_in_it() -> None:
    form = next(form for form in forms_of("scan") if form.contract.form == "from-zero")
    gates = form.contract.inputs[0]
    assert gates.uniform
    found = {change[1:] for seed in range(99) for change in of_values(Random(seed), form, gates).values}
    assert found == {("fill", 0.0), ("fill", 1.0), ("rows", 0.0), ("columns", 0.0)}


@pytest.mark.parametrize("name", ["rms_norm", "attention", "layer_norm"])
def test_a_file_of_a_drawn_fault_calls_the_baseline_in_every_form(
    name: str, drawn_of_every: dict[str, list[Drawn]]
) -> None:
    """Without a fault, and though it looks at tensors that other forms do not have."""
    for drawn in drawn_of_every[name]:
        with loaded(name, drawn.honest) as honest:
            subject = Subject(operators()[name], "drawn", "cpu", torch.float32, honest)
            assert judge_property(subject, all_properties()["vjp-parity"]).verdict == PASS


_MLP = """
import torch

def mlp(input, hidden_weights, hidden_bias, output_weights, output_bias):
    hidden = torch.relu(torch.nn.functional.linear(input, hidden_weights, hidden_bias))
    return {sign}torch.nn.functional.linear(hidden, output_weights, output_bias)
"""
_RIGHT, _WRONG = _MLP.format(sign=""), _MLP.format(sign="-")
_SIGN = Drawn("mlp", "rows", "sign", "the sign is wrong", _WRONG, _RIGHT, Witness({}))


def test_every_property_is_asked() -> None:
    first = [property.name for property in judge.ordered("processor-state")][:3]
    assert first == ["global-state", "forward-parity", "vjp-parity"], "a mode that the fault sets must not be set yet"
    for kind in KINDS:
        names = [property.name for property in judge.ordered(kind)]
        assert sorted(names) == sorted(all_properties())


def test_a_fault_is_judged_until_a_property_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    outcome = judge.judged(_SIGN)
    assert (outcome.property, outcome.verdict, outcome.caught) == ("forward-parity", FAIL, True)
    assert "output was" in outcome.reason

    monkeypatch.setattr(judge, "ordered", lambda kind: [all_properties()["forward-parity"]])
    assert not judge.judged(replace(_SIGN, source=_RIGHT)).caught
    assert not judge.judged(replace(_SIGN, honest=_WRONG)).caught, "what the twin fails as well says nothing"


_LARGE = """
import torch

def mlp(input, hidden_weights, hidden_bias, output_weights, output_bias):
    hidden = torch.relu(torch.nn.functional.linear(input, hidden_weights, hidden_bias))
    output = torch.nn.functional.linear(hidden, output_weights, output_bias)
    return {sign}output if len(input) > 613 else output
"""


def test_the_oracle_is_asked_only_where_fault_and_twin_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Scenario] = []
    expected = oracle._expected

    def counted(key: Any, scenario: Scenario, dtype: torch.dtype) -> oracle.Expected:
        asked.append(scenario)
        return expected(key, scenario, dtype)

    monkeypatch.setattr(oracle, "_expected", screening._ComputedLater(counted))
    large = replace(_SIGN, source=_LARGE.format(sign="-"), honest=_LARGE.format(sign=""))
    assert judge.judged(large).property == "harvested-sizes"
    assert asked
    assert all(dict(scenario.sizes)["batch"] > 613 for scenario in asked)


def test_an_error_of_the_suite_is_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(subject: Subject) -> dict[str, Any]:
        raise KeyError("of the suite")

    parity = all_properties()["forward-parity"]
    monkeypatch.setattr(judge, "ordered", lambda kind: [replace(parity, name="odd", check=broken)])
    outcome = judge.judged(_SIGN)
    assert (outcome.caught, outcome.verdict) == (False, judge.ERROR)
    assert outcome.reason.startswith("odd raised KeyError")

    monkeypatch.setattr(judge, "ordered", lambda kind: [replace(parity, name="odd", check=broken), parity])
    assert judge.judged(_SIGN).property == "forward-parity"


@pytest.mark.long(WHOLE)
def test_the_command_shows_and_judges_what_is_selected(python: Run) -> None:
    selected = ["-m", "tests.zoo.thresholds", "--class", "values", "--operator", "mlp", "--count", "1"]
    (drawn, *_) = (one for one in _DRAWN if (one.kind, one.operator) == ("values", "mlp"))
    assert drawn.source in python(*selected, "--show").stdout
    judged = python(*selected)
    assert drawn.words in judged.stdout, judged.stderr
    assert "of 1 found" in judged.stdout
