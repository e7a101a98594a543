"""Cells whose calls are shared out to shards: no call is left out, no part is a verdict, a fault in one is found."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from backends.base import Declaration
from harness import discovery
from harness.__main__ import main
from harness.executing.timing import digest
from harness.judging.judge import judge
from harness.judging.subject import Subject
from harness.properties import all_properties
from harness.report.cell import FAIL, NO_EVIDENCE, NOT_RUN, PASS, Cell
from harness.report.levels import exit_reason
from harness.report.merge import merge
from harness.report.parts import PARTS, held, joined, reason
from harness.report.report import Report
from harness.report.shards import RunPlan, Shard
from tests.meta.conftest import Run
from tests.meta.reports import cell, of
from tests.meta.tiers import WHOLE

SWIGLU = discovery.operator("swiglu")
DIVISIBLE = [name for name, property in all_properties().items() if property.divisible]


def _judged(property: str, part: Shard, function: Callable[..., Any] = SWIGLU.forward, **changes: Any) -> Cell:
    subject = Subject(SWIGLU, "mine", "cpu", torch.float32, function, share=part, **changes)
    return judge(subject, all_properties()[property])


def _figures(scenarios: int, used: float, **more: Any) -> dict[str, Any]:
    return {"scenarios": scenarios, "tensors": 3, "worst": {"used": used}, **more}


def _part(number: int, of: int = 2, **figures: Any) -> Cell:
    there = held(_figures(10 * number, number / 10, **figures), Shard(number, of))
    return replace(cell(NO_EVIDENCE, seconds=1.5), figures=there, reason=reason(there))


def _shard(*cells: Cell, number: int, of_all: int = 2) -> Report:
    plan = RunPlan("asked", "files", shards=of_all, begun=(number,), finished=(number,), asked=len(cells))
    return replace(of(*cells, complete=False), plan=plan)


@pytest.mark.parametrize("property", DIVISIBLE)
def test_the_parts_make_the_calls_of_the_whole(property: str) -> None:
    made: Counter[tuple[Any, ...]] = Counter()

    def noting(*inputs: Tensor) -> Any:
        made[torch.is_grad_enabled(), *map(digest, inputs), *(tensor.requires_grad for tensor in inputs)] += 1
        return SWIGLU.forward(*inputs)

    whole = _judged(property, Shard(), noting)
    assert whole.verdict == PASS
    of_the_whole = Counter(made)
    made.clear()
    parts = [_judged(property, Shard(number, 3), noting) for number in (1, 2, 3)]
    assert made == of_the_whole
    assert [part.verdict for part in parts] == [NO_EVIDENCE] * 3
    assert parts[1].reason.startswith("part 2 of 3 holds: `merge` the reports of all shards")
    (found,) = joined(parts)
    assert (found.verdict, found.reason) == (PASS, "")
    assert found.figures["scenarios"] == whole.figures["scenarios"]
    assert found.figures["worst"] == whole.figures["worst"]


def test_a_fault_that_one_call_shows_fails_its_part_and_the_whole() -> None:
    calls: list[tuple[int, ...]] = []

    def wrong_once(*inputs: Tensor) -> Any:
        calls.append(tuple(inputs[0].shape))
        result = SWIGLU.forward(*inputs)
        return result * 2 if inputs[0].shape == shape else result

    shape: tuple[int, ...] = ()
    _judged("combinations", Shard(1, 4), wrong_once)
    first = Counter(calls)
    calls.clear()
    others = [_judged("combinations", Shard(number, 4), wrong_once) for number in (2, 3, 4)]
    shape = next(shape for shape in first if shape not in calls and 0 not in shape)
    failed = _judged("combinations", Shard(1, 4), wrong_once)
    assert failed.verdict == FAIL
    assert PARTS not in failed.figures
    reports = [_shard(part, number=number, of_all=4) for number, part in enumerate([failed, *others], start=1)]
    found = merge([(str(number), report) for number, report in enumerate(reports)])
    assert [(each.verdict, each.reason) for each in found.cells] == [(FAIL, failed.reason)]
    assert found.complete


def test_other_properties_are_judged_whole() -> None:
    found = _judged("forward-parity", Shard(2, 3))
    assert found.verdict == PASS
    assert "evident" not in found.figures


def test_what_is_declared_is_not_judged_in_parts() -> None:
    """Another part might be the one that does not hold."""
    declared = (Declaration("gradient-subsets", "it has none"),)
    found = _judged("gradient-subsets", Shard(1, 2), declared=declared)
    assert (found.verdict, found.figures) == (NOT_RUN, {})
    assert found.reason == "it is declared not to hold, and a part of it may: judge it without --divide"


def test_figures_of_parts_are_added_up() -> None:
    forms = [{"f[a]": _figures(1, 0.5)}, {"f[a]": _figures(2, 0.25)}]
    (found,) = joined([_part(2, forms=forms[1], pairs=7), _part(1, forms=forms[0], pairs=7, undecided=4)])
    assert found.figures == {
        **_figures(30, 0.2, pairs=7, undecided=4, divided=2),
        "forms": {"f[a]": _figures(3, 0.5)},
    }
    assert found.seconds == 3.0


def test_a_part_may_lack_evidence_that_another_has() -> None:
    """A few calls may show nothing of one gradient: so it was for half of those of LayerNorm in float64."""
    seen, blind = {"x": True, "gradient of x": True}, {"x": True, "gradient of x": False}
    (found,) = joined([_part(1, evident=blind), _part(2, evident=seen)])
    assert (found.verdict, found.figures) == (PASS, _figures(30, 0.2, divided=2))
    (found,) = joined([_part(1, evident=blind), _part(2, evident=blind)])
    assert (found.verdict, found.figures) == (NO_EVIDENCE, {"divided": 2})
    assert found.reason == "in each of 2 parts, a wrong answer would have passed too for gradient of x"
    b = _figures(1, 0.5, evident=seen)
    forms = [{"f[a]": _figures(1, 0.5, evident=each), "f[b]": b} for each in (seen, blind)]
    (found,) = joined([_part(1, forms=forms[0]), _part(2, forms=forms[1])])
    assert found.verdict == PASS
    assert "evident" not in str(found.figures)
    (found,) = joined([_part(1, forms=forms[1]), _part(2, forms=forms[1])])
    assert found.reason.endswith("would have passed too for f[a]: gradient of x")


def test_parts_without_evidence_are_judged_by_all_of_them() -> None:
    """Some of many shards have no call that tells a wrong gradient; each of them decided about the whole."""
    parts = [_judged("combinations", Shard(number, 60)) for number in range(1, 61)]
    assert {part.verdict for part in parts} == {NO_EVIDENCE}
    without = [part for part in parts if "False" in str(part.figures)]
    assert 0 < len(without) < len(parts)
    (found,) = joined(parts)
    assert (found.verdict, found.reason) == (PASS, "")


def test_parts_join_in_any_order_and_missing_ones_are_told() -> None:
    one, two, three = (_part(number, 3) for number in (1, 2, 3))
    (some,) = joined([three, one])
    assert some.verdict == NO_EVIDENCE
    assert some.reason.startswith("parts 1, 3 of 3 hold: `merge`")
    assert joined([some, two]) == joined([one, two, three])
    assert joined([one, one, one])[0].verdict == NO_EVIDENCE


def test_a_run_is_complete_with_the_parts_of_all_shards() -> None:
    """A cell of parts counts once, and a shard is not red for a part."""
    first, second = _shard(_part(1), cell(property="layouts"), number=1), _shard(_part(2), number=2)
    assert not exit_reason(second, part=True)
    assert not merge([("a", first)]).ok
    both = merge([("a", first), ("b", second)])
    assert both.ok
    assert both.plan is not None
    assert both.plan.asked == 2
    assert merge([("both", both)]) == both


def test_a_part_that_fails_or_cannot_tell_decides() -> None:
    for verdict in (FAIL, NO_EVIDENCE):
        found = merge([("a", _shard(_part(1), number=1)), ("b", _shard(cell(verdict), number=2))])
        assert [(each.verdict, PARTS in each.figures) for each in found.cells] == [(verdict, False)]


@pytest.mark.long(WHOLE)
def test_two_shards_are_the_run(conformance: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked = ["gradient_subsets layouts", "--operator=swiglu", "--backend=python-autograd", "--dtype=float32"]
    halves, whole = [tmp_path / "1.json", tmp_path / "2.json"], tmp_path / "whole.json"
    for number, path in enumerate(halves, start=1):
        run = conformance(*asked, "--device=cpu", f"--shard={number}/2", "--divide", f"--report={path}", "-rs")
        assert run.returncode == 0, run.stdout
        assert f"part {number} of 2 holds" in run.stdout
    conformance(*asked, "--device=cpu", f"--report={whole}")
    monkeypatch.setattr(sys, "argv", ["harness", "merge", *map(str, halves), "-o", str(tmp_path / "joined.json")])
    assert main() == 0
    found, expected = Report.read(tmp_path / "joined.json"), Report.read(whole)
    assert found.complete
    assert [(each.key, each.verdict) for each in found.cells] == [(each.key, each.verdict) for each in expected.cells]


def test_divide_needs_shards(conformance: Run) -> None:
    run = conformance("layouts", "--operator=swiglu", "--divide")
    assert run.returncode == 4
    assert "--divide was given without --shard K/N, which says how many parts there are: add it" in run.stderr
