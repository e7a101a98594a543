"""From the result of a check to a verdict: whose error it was, and the effect of a declaration."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch

from backends.base import Declaration
from harness.errors import Failure, NoEvidence, NotApplicable
from harness.judging.judge import judge
from harness.judging.property import Property
from harness.judging.subject import Subject
from harness.judging.tally import Tally
from harness.properties import all_properties
from harness.report.cell import DECLARED, FAIL, NEEDLESS, NO_EVIDENCE, NOT_RUN, PASS, Cell
from harness.report.levels import PRODUCTION
from spec.lltm import OPERATOR
from tests.zoo.honest.lltm import Cell as HonestCell
from tests.zoo.registry import judged


def _raises(error: BaseException) -> Callable[..., Any]:
    def check(_: Any) -> dict[str, Any]:
        raise error

    return check


def _subject(function: Callable[..., Any] = HonestCell(), *declared: Declaration) -> Subject:  # noqa: B008
    return Subject(OPERATOR, "mine", "cpu", torch.float32, function, declared)


def _cell(check: Callable[..., Any], *declared: Declaration) -> Cell:
    return judge(_subject(HonestCell(), *declared), Property("shine", "it shines", check))


HOLDS: Callable[..., Any] = lambda _: {"seen": 3}  # noqa: E731
NO_SHINE = Declaration("shine", "it was never polished")


@pytest.mark.parametrize(
    ("check", "verdict", "reason"),
    [
        (HOLDS, PASS, ""),
        (_raises(Failure("it is dull")), FAIL, "it is dull"),
        (_raises(NoEvidence("too dark")), NO_EVIDENCE, "too dark"),
        (_raises(NotApplicable("no light")), NOT_RUN, "no light"),
    ],
)
def test_what_a_check_says_is_the_verdict(check: Callable[..., Any], verdict: str, reason: str) -> None:
    cell = _cell(check)
    assert (cell.verdict, cell.reason) == (verdict, reason)
    assert cell.key == ("lltm", "mine", "cpu", "float32", "shine")
    assert cell.figures == ({"seen": 3} if verdict == PASS else {})


def test_a_declared_failure_is_declared_with_both_reasons() -> None:
    cell = _cell(_raises(Failure("it is dull")), NO_SHINE)
    assert (cell.verdict, cell.reason) == (DECLARED, "it was never polished")
    assert cell.figures == {"seen": "it is dull"}


def test_a_declaration_that_is_no_longer_needed_fails() -> None:
    cell = _cell(HOLDS, NO_SHINE)
    assert (cell.verdict, cell.level) == (FAIL, PRODUCTION), "it computes what it should"
    assert cell.figures[NEEDLESS]
    assert cell.reason == (
        "the backend declares that it does not hold shine (it was never polished), but it does: remove the "
        "declaration, or say by_chance=True if it depends on the run"
    )


def test_what_depends_on_the_run_is_declared_in_every_run() -> None:
    by_chance = replace(NO_SHINE, by_chance=True)
    held, failed = _cell(HOLDS, by_chance), _cell(_raises(Failure("it is dull")), by_chance)
    assert [(cell.verdict, cell.reason) for cell in (held, failed)] == [(DECLARED, "it was never polished")] * 2
    assert held.figures == {"seen": "it held in this run"}
    assert failed.figures == {"seen": "it is dull"}
    assert _cell(_raises(NoEvidence("too dark")), by_chance).verdict == NO_EVIDENCE


@pytest.mark.parametrize("error", [NoEvidence("too dark"), NotApplicable("no light")])
def test_a_declaration_hides_no_other_verdict(error: Exception) -> None:
    assert _cell(_raises(error), NO_SHINE).reason == str(error)


@pytest.mark.parametrize(
    "other", [{"property": "sizes"}, {"operator": "mlp"}, {"device": "cuda"}, {"dtype": torch.float16}]
)
def test_a_declaration_covers_only_what_it_names(other: dict[str, Any]) -> None:
    declaration = Declaration(**{"property": "shine", "reason": "why", **other})
    assert _cell(_raises(Failure("it is dull")), declaration).verdict == FAIL


def test_a_declaration_needs_a_reason() -> None:
    with pytest.raises(ValueError, match="a declaration on 'shine' needs a reason"):
        Declaration("shine", "  ")


@pytest.mark.parametrize("error", [ZeroDivisionError("ours"), SystemExit(3), KeyboardInterrupt()])
def test_a_fault_of_the_harness_is_nobody_elses(error: BaseException) -> None:
    for declared in ((), (NO_SHINE,)):
        with pytest.raises(type(error)):
            _cell(_raises(error), *declared)


class _WrongAtTimes(HonestCell):
    """Every seventh call is wrong. So the call that hypothesis repeats is right."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self.calls += 1
        new_h, new_cell = super().__call__(*args, **kwargs)
        return (2 * new_h if self.calls % 7 == 3 else new_h), new_cell


def test_a_drawn_call_that_is_wrong_once_fails() -> None:
    cell = judge(_subject(_WrongAtTimes()), all_properties()["drawn-calls"])
    assert cell.verdict == FAIL
    assert "it depends on earlier calls, on chance" in cell.reason
    assert "found by hypothesis among 20 drawn calls, seed 0" in cell.reason


def test_an_error_of_the_harness_at_a_drawn_call_is_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    errors = iter([ValueError("ours")])
    monkeypatch.setattr(
        Tally, "run", lambda *_: (_ for _ in ()).throw(error) if (error := next(errors, None)) else None
    )
    with pytest.raises(ExceptionGroup, match="produces unreliable results"):
        judge(_subject(), all_properties()["drawn-calls"])


def _breaks(*_: Any) -> None:
    raise ZeroDivisionError("theirs")


class _Breaks:
    def __call__(self, *_: Any) -> None:
        raise ZeroDivisionError("theirs")


@pytest.mark.parametrize(
    "function", [_breaks, _Breaks(), functools.partial(_breaks, 1)], ids=["def", "class", "partial"]
)
def test_an_exception_of_the_candidate_is_its_own(function: Callable[..., Any]) -> None:
    def check(subject: Subject) -> dict[str, Any]:
        subject.function()
        return {}

    cell = judge(_subject(function), Property("shine", "it shines", check))
    assert cell.verdict == FAIL
    assert cell.reason == "shine: the candidate raised ZeroDivisionError: theirs, but should not raise"


class _BackwardBreaks(HonestCell):
    """Backward raises from its call of this number on: the function itself is not on the stack then."""

    def __init__(self, right: int) -> None:
        self.right = right

    def cotangents(self, g_h: torch.Tensor, g_c: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        self.right -= 1
        if self.right < 0:
            raise ZeroDivisionError("theirs")
        return g_h, g_c


@pytest.mark.parametrize("right", [0, 1, 2, 3])
@pytest.mark.parametrize("property", ["memory", "repeated-backward"])
def test_an_exception_in_backward_is_the_candidates(property: str, right: int) -> None:
    cell = judged(_BackwardBreaks(right), property, torch.float32)
    assert cell.verdict == FAIL
    assert "ZeroDivisionError: theirs" in cell.reason


def _exits(*_: Any) -> None:
    raise SystemExit("enough")


@pytest.mark.parametrize(
    "property", ["forward-parity", "layouts", "gradient-subsets", "no-side-effects", "rejects-wrong-calls"]
)
def test_a_candidate_that_exits_has_failed(property: str) -> None:
    cell = judged(_exits, property, torch.float32)
    assert cell.verdict == FAIL
    assert "SystemExit: enough" in cell.reason or "ended the process" in cell.reason


def test_a_candidate_that_exits_on_a_wrong_call_has_failed() -> None:
    class Exits(HonestCell):
        def check(self, *inputs: torch.Tensor) -> None:
            try:
                super().check(*inputs)
            except Exception:
                raise SystemExit("enough") from None

    for property in ("rejects-wrong-calls", "error-messages"):
        assert judged(Exits(), property, torch.float32).verdict == FAIL


@pytest.mark.parametrize("result", [None, 3, (), (torch.ones(3, 5),), [torch.ones(3, 5)] * 3, (None, None), math.nan])
def test_a_strange_result_has_failed(result: Any) -> None:
    cell = judged(lambda *_: result, "forward-parity", torch.float32)
    assert cell.verdict == FAIL
    assert "but should" in cell.reason


def test_judging_leaves_the_random_generator_alone() -> None:
    state = torch.random.get_rng_state()
    _cell(lambda _: {"drawn": float(torch.rand(()))})
    assert torch.equal(state, torch.random.get_rng_state())


@pytest.mark.parametrize("property", ["uninitialised-memory", "repeated-backward", "autograd-hooks"])
def test_what_follows_from_a_wrong_plain_call_is_said_to(property: str) -> None:
    class Doubled(HonestCell):
        def finish(self, new_h: torch.Tensor, new_cell: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            return 2 * new_h, new_cell

    cell = judged(Doubled(), property, torch.float32)
    assert cell.verdict == FAIL
    assert cell.reason.startswith("follows from the plain call, which is wrong already: new_h was ")
    assert "some of which was read" not in cell.reason


@pytest.mark.parametrize("property", ["drawn-calls", "invariants"])
@pytest.mark.parametrize("wrong", [False, True])
def test_two_runs_give_equal_cells(property: str, wrong: bool) -> None:
    class Cut(HonestCell):
        def finish(self, new_h: torch.Tensor, new_cell: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            return (new_h if new_h.shape[1] < 7 or not wrong else 0.98 * new_h), new_cell

    first, second = (replace(judged(Cut(), property, torch.float32), seconds=0.0) for _ in range(2))
    assert first == second


@pytest.mark.parametrize(
    ("function", "figures"),
    [
        (lambda *inputs: tuple(y.double() for y in OPERATOR.forward(*inputs)), {"tensor": "dtype of new_h"}),
        (lambda *inputs: tuple(y + 1 for y in OPERATOR.forward(*inputs)), {"tensor": "new_h"}),
        (lambda *inputs: 1 / 0, {"raised": "forward raised ZeroDivisionError: division by zero"}),
    ],
    ids=["dtype", "value", "error"],
)
def test_the_figures_say_what_failed(function: Callable[..., Any], figures: dict[str, str]) -> None:
    """By them a report groups the failures of all properties."""
    for name in ("forward-parity", "layouts", "determinism"):
        cell = judge(Subject(OPERATOR, "mine", "cpu", torch.float32, function), all_properties()[name])
        if cell.verdict == FAIL:
            assert {key: cell.figures.get(key) for key in figures} == figures, name
        else:
            assert name == "determinism"
