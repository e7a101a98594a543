"""Calls that are compared with the reference: what is far from it is judged by expected results, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import product
from typing import Any

import pytest
import torch
from torch import Tensor

from harness.discovery import load_function, operator
from harness.errors import Failure, NoEvidence
from harness.judging import inference, near, tally
from harness.judging.inference import hold_without_grad
from harness.judging.near import named, passes, run_near
from harness.judging.scenario import Scenario
from harness.judging.scenarios import beside_values, proper_subsets, representative
from harness.judging.subject import Subject
from harness.judging.tally import Tally
from spec.contract import ONE_NUMBER, Operator


def _subject(name: str, function: Any = None) -> Subject:
    contract = operator(name)
    found = function or load_function(name, "python-autograd", "cpu")
    return Subject(contract, "candidate", "cpu", torch.float32, found).in_form(contract)


def _scenario(contract: Operator, **changes: Any) -> Scenario:
    return Scenario.of(representative(contract), **changes)


def _never(*_: Any) -> Any:
    raise AssertionError("the expected results were asked for")


@pytest.mark.parametrize("name", ["attention", "softmax", "lltm", "cross_entropy"])
def test_right_results_need_no_expected_ones(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    subject = _subject(name)
    monkeypatch.setattr(tally, "expected", _never)
    monkeypatch.setattr(inference, "expected", _never)
    made = Tally(subject)
    for family in subject.operator.of_one_tensor():
        run_near(made, _scenario(subject.operator, values=family.name))
        hold_without_grad(made, _scenario(subject.operator, values=family.name), "no_grad", near=True)
    assert made.scenarios == len(subject.operator.of_one_tensor())


def test_what_is_far_is_judged_and_fails_by_its_allowance() -> None:
    def wrong(x: Tensor, w: Tensor, b: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, ...]:
        new_h, new_cell = load_function("lltm", "python-autograd", "cpu")(x, w, b, h, c)
        return new_h, new_cell if bool(b.any()) else 1.01 * new_cell

    subject = _subject("lltm", wrong)
    run_near(Tally(subject), _scenario(subject.operator))
    scenario = _scenario(subject.operator, values="zeros of bias")
    with pytest.raises(
        Failure, match=r"new_cell was .*allowed .*zeros of bias.*\n.*it is 1.01 times what it should be"
    ):
        run_near(Tally(subject), scenario)
    with pytest.raises(Failure, match=r"new_cell was .*allowed .*zeros of bias"):
        hold_without_grad(Tally(subject), scenario, "no_grad", near=True)


def test_a_call_that_is_right_the_second_time_fails_and_says_so() -> None:
    calls: list[int] = []

    def wrong(x: Tensor) -> Tensor:
        calls.append(1)
        return torch.softmax(x, -1) * (1.5 if len(calls) < 3 else 1.0)

    subject = _subject("softmax", lambda x, **_: wrong(x))
    with pytest.raises(Failure, match=r"(?s)output was .*the same call again is right: it depends on earlier"):
        run_near(Tally(subject), _scenario(subject.operator, values="zeros of input"))


def test_what_raises_there_fails() -> None:
    def wrong(x: Tensor) -> Tensor:
        if not x.any():
            raise ValueError("no zeros")
        return torch.softmax(x, -1)

    subject = _subject("softmax", lambda x, **_: wrong(x))
    with pytest.raises(Failure, match="forward raised ValueError: no zeros"):
        run_near(Tally(subject), _scenario(subject.operator, values="zeros of input"))


def test_nothing_fails_by_the_comparison_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(near, "_agree", lambda *_: False)
    monkeypatch.setattr(near, "_jump", lambda *_: False)
    subject, made = _subject("softmax"), Tally(_subject("softmax"))
    scenario = _scenario(subject.operator, values="equal columns of input")
    call = subject.realise(scenario)
    outputs = subject.outputs(call, scenario)
    assert not passes(subject, scenario, named(subject, outputs, subject.gradients(call, outputs, scenario)))
    run_near(made, scenario)
    assert made.evidence, "it was judged by its expected results"


def _off(by: float, contract: Operator) -> Callable[..., tuple[Tensor, ...]]:
    """The forward of LLTM that is wrong where it is not computed in float64."""

    def forward(*inputs: Tensor) -> tuple[Tensor, ...]:
        new_h, new_cell = contract.forward(*inputs)
        return new_h, new_cell + (0.0 if new_cell.dtype == torch.float64 else by)

    return forward


def test_what_is_near_the_reference_in_the_dtype_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a sum in bfloat16 that stops growing."""
    monkeypatch.setattr(tally, "expected", _never)
    monkeypatch.setattr(inference, "expected", _never)
    contract = operator("lltm")
    made = Tally(_subject("lltm", _off(0.5, contract)))
    made.subject = replace(made.subject, operator=replace(contract, forward=_off(0.5, contract)))
    run_near(made, _scenario(contract, values="zeros of bias"))
    hold_without_grad(made, _scenario(contract, values="zeros of bias"), "no_grad", near=True)
    assert not made.undecided


def test_where_the_reference_in_the_dtype_fails_too_nothing_is_asked() -> None:
    contract = operator("lltm")
    made = Tally(_subject("lltm", _off(1.0, contract)))
    made.subject = replace(made.subject, operator=replace(contract, forward=_off(0.5, contract)))
    scenario = _scenario(contract, values="zeros of bias")
    run_near(made, scenario)
    assert len(made.undecided) == 1
    assert made.figures()["undecided"] == 1
    hold_without_grad(made, scenario, "no_grad", near=True)
    assert made.figures()["undecided"] == 2
    with pytest.raises(Failure, match="new_cell"):
        hold_without_grad(made, scenario, "no_grad")
    made.run(scenario)
    with pytest.raises(NoEvidence, match="the suite suspects itself"):
        made.figures()


def _mask(x: Tensor, w: Tensor, g: Tensor) -> Tensor:
    return torch.where(x @ w.t() > 0, g, torch.zeros_like(g))


def _slope_of_one(x: Tensor, w: Tensor) -> Tensor:
    z = x @ w.t()
    return torch.relu(z) if bool(w.any()) else torch.relu(z.detach()) + z - z.detach()


def test_where_the_reference_jumps_nothing_is_asked() -> None:
    """The slope of relu at 0 is 1 in this function: the contract's own families judge a kink, and its zeros do not."""
    linear = operator("linear_act")
    contract = replace(
        linear,
        inputs=linear.inputs[:2],
        forward=lambda x, w: (torch.relu(x @ w.t()),),
        vjp=lambda given, g: (_mask(*given, g[0]) @ given[1], _mask(*given, g[0]).t() @ given[0]),
        call=None,
        unspecified=None,
    )
    subject = Subject(contract, "candidate", "cpu", torch.float32, _slope_of_one)
    scenario = _scenario(contract, values="zeros of weight")
    run_near(Tally(subject), scenario)
    with pytest.raises(Failure, match="gradient of weight was"):
        Tally(subject).run(scenario)


def test_every_subset_of_gradients_is_beside_every_input_and_kind() -> None:
    contract = operator("lltm")
    found = beside_values(contract)
    pairs = {(scenario.wanted, scenario.values.split(" of ")[1]) for scenario in found}
    assert pairs == {(wanted, arg.name) for wanted in proper_subsets(contract) for arg in contract.inputs}
    assert {scenario.values for scenario in found} == {family.name for family in contract.of_one_tensor()}
    few = operator("layer_norm").in_form("vector")
    beside = {(scenario.wanted, scenario.values) for scenario in beside_values(few)}
    assert beside == set(product(proper_subsets(few), (family.name for family in few.of_one_tensor())))
    many = operator("lstm_cell")
    assert [scenario.wanted for scenario in beside_values(many)].count(("input",)) == 1
    assert {s.values for s in beside_values(many)} >= {f"{ONE_NUMBER} of {arg.name}" for arg in many.inputs}
