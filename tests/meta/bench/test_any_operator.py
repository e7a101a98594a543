"""Every operator can be timed and checked: also one with integer inputs, or with inputs that have no gradient."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from backends.base import PythonFunction
from harness.bench import blocks, correctness, products
from harness.bench.blocks import Ring, asking
from harness.bench.foreign import CandidateTimer
from harness.discovery import backend, load_function, operators
from harness.errors import Failure
from harness.judging.scenario import Scenario
from harness.judging.subject import Subject
from harness.measuring import work
from spec.contract import PHASES, Operator
from tests.meta.bench.here import Here
from tests.meta.tiers import first_alone


def _subject(operator: Operator) -> Subject:
    right = backend("python-autograd").implementation(operator.name)
    assert isinstance(right, PythonFunction)
    return Subject(operator, "it", "cpu", torch.float32, right.function).in_form(operator)


@pytest.mark.parametrize("large", [False, True], ids=["oracle", "rms"])
@pytest.mark.parametrize("name", sorted(operators()))
def test_an_operator_is_checked_and_timed_in_every_phase(
    name: str, large: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At its smallest case; `rms` is how the results of large cases are checked."""
    monkeypatch.setattr(correctness, "is_small", lambda subject, case: not large)
    subject = _subject(operators()[name])
    operator = subject.operator
    case = operator.cases[0]
    correctness.check(subject, case)
    call = subject.realise(Scenario.of(case))
    cotangents = tuple(g for g in call.cotangents if g is not None)
    for phase in PHASES if any(arg.differentiable for arg in operator.inputs) else PHASES[:1]:
        timed = work.prepare(subject.function, [(call.inputs, cotangents)], phase, "cpu")
        results = timed.steps[0]()
        found = [results] if isinstance(results, torch.Tensor) else list(results)
        products.prepare(operator, [(call.inputs, cotangents)], phase, "cpu")
        assert len(found) == correctness.results_of(operator, phase) or phase == "forward+backward"


def test_how_results_are_checked_does_not_depend_on_their_dtype() -> None:
    """A LayerNorm of 4096 rows was checked by the oracle in half types alone, for half a minute each time."""
    contract = operators()["layer_norm"]
    cases = {case.name: case for case in contract.cases}
    for dtype in (torch.float32, torch.bfloat16, torch.float64):
        subject = replace(_subject(contract), dtype=dtype)
        assert correctness.is_small(subject, cases["tokens"])
        assert not correctness.is_small(subject, cases["middle"])


@pytest.mark.parametrize("name", first_alone(sorted(operators()), count=6))
def test_a_candidate_of_an_operator_is_timed_in_every_phase(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In blocks whose inputs are rewritten, at its smallest case. Integers move by whole entries."""
    monkeypatch.setattr(blocks, "_LENGTH", 4)
    subject, threads = _subject(operators()[name]), torch.get_num_threads()
    function = load_function(name, "python-autograd", "cpu")
    case = subject.operator.cases[0]
    try:
        ring = Ring(subject.operator, case, subject.dtype, "cpu", threads)
        for phase in PHASES if any(arg.differentiable for arg in subject.operator.inputs) else PHASES[:1]:
            timer = CandidateTimer(ring, phase, subject, Here(function), asking(None), rounds=1)
            timer.begin(1e-4, 60)
            assert timer.sample() > 0
            assert timer.trouble is None
    finally:
        torch.set_num_threads(threads)


@pytest.mark.parametrize("name", ["embedding", "cross_entropy", "rotary"])
def test_a_wrong_gradient_beside_inputs_without_one_is_noticed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(correctness, "is_small", lambda subject, case: False)
    operator = operators()[name]

    def wrong(first: torch.Tensor, *others: torch.Tensor) -> object:
        doubled = first + (first - first.detach())  # the same values, and twice the gradient
        return operator.forward(doubled, *others)

    subject = Subject(operator, "it", "cpu", torch.float32, wrong).in_form(operator)
    with pytest.raises(Failure, match="gradient of"):
        correctness.check(subject, operator.cases[0])
