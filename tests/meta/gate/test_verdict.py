"""The gate from samples to exit code, on a simulated machine: the verdict for each kind of problem."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from harness.gate import drawing, verdict
from harness.gate.matching import EXTRA, MISSING, Fate
from harness.gate.sampling import KINDS, PLANTED, SAME, Samples, SamplingPlan
from harness.gate.statistics import Estimate, Rule
from harness.gate.verdict import Result
from tests.meta.gate import machine
from tests.meta.gate.machine import BASE, HEAD, Machine, measured

RULE = Rule()
SLOWER = {BASE: 1e-4, HEAD: 1.1e-4}


def _result(monkeypatch: pytest.MonkeyPatch, first: Machine, again: Machine | None = None) -> Result:
    samples = measured(monkeypatch, first)
    suspects = verdict.suspects(samples, RULE)
    rerun = measured(monkeypatch, again or first) if suspects else {}
    (found,) = verdict.results(samples, rerun, RULE)
    return found


def test_the_same_code_is_not_slower(monkeypatch: pytest.MonkeyPatch) -> None:
    found = _result(monkeypatch, Machine())
    assert found.verdict == verdict.NOT_SLOWER
    assert "of base's time" in found.reason
    assert verdict.overall([found], []) == verdict.PASSED


def test_slower_code_is_slower_when_measured_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    found = _result(monkeypatch, Machine(seconds=SLOWER))
    assert found.verdict == verdict.SLOWER
    assert "when it was measured again" in found.reason
    assert found.estimates["head"].ratio == pytest.approx(1.1, abs=0.01)
    assert verdict.overall([found], []) == verdict.FAILED


def test_an_alarm_that_does_not_come_again_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    found = _result(monkeypatch, Machine(seconds=SLOWER), Machine())
    assert found.verdict == verdict.NOT_SLOWER
    assert found.rerun is not None
    assert found.rerun.ratio == pytest.approx(1, abs=0.01)


def test_an_alarm_that_cannot_be_measured_again_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    found = _result(monkeypatch, Machine(seconds=SLOWER), Machine(raises={HEAD: machine.BROKEN}))
    assert found.verdict == verdict.INCONCLUSIVE
    assert "could not be measured again" in found.reason


def test_faster_code_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _result(monkeypatch, Machine(seconds={BASE: 1e-4, HEAD: 0.8e-4})).verdict == verdict.FASTER


def test_where_a_planted_slow_down_is_not_seen_nothing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    found = _result(monkeypatch, Machine(noise=0.6))
    assert found.verdict == verdict.INCONCLUSIVE
    assert "planted slow-down of 10%" in found.reason
    assert verdict.overall([found], []) == verdict.INCONCLUSIVE


def test_a_control_that_was_seen_by_luck_does_not_make_a_wide_interval_an_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    samples = measured(monkeypatch, Machine(noise=0.5))
    (clear,) = measured(monkeypatch, Machine()).values()
    for s in samples.values():
        s.quadruples[PLANTED], s.quadruples[SAME] = clear.quadruples[PLANTED], clear.quadruples[SAME]
    (found,) = verdict.results(samples, {}, RULE)
    assert found.estimates["head"].high > 1.1
    assert found.verdict == verdict.INCONCLUSIVE
    assert "10% cannot be excluded" in found.reason


@pytest.mark.parametrize("second", [0.1, -0.1])
def test_where_base_differs_from_itself_nothing_is_said(monkeypatch: pytest.MonkeyPatch, second: float) -> None:
    found = _result(monkeypatch, Machine(seconds=SLOWER, second=second))
    assert found.verdict == verdict.INCONCLUSIVE
    assert "base against itself" in found.reason


def test_the_planted_control_is_ten_percent_of_work(monkeypatch: pytest.MonkeyPatch) -> None:
    found = _result(monkeypatch, Machine(noise=0.001))
    assert found.estimates[PLANTED].ratio == pytest.approx(1.1, abs=0.002)


def test_more_memory_fails_though_it_is_as_fast(monkeypatch: pytest.MonkeyPatch) -> None:
    found = _result(monkeypatch, Machine(memory={BASE: 1000, HEAD: 1020}))
    assert found.verdict == verdict.MORE_MEMORY
    assert "1,020 bytes" in found.reason
    assert verdict.overall([found], []) == verdict.FAILED
    assert _result(monkeypatch, Machine(memory={BASE: 1000, HEAD: 1005})).verdict == verdict.NOT_SLOWER


def test_a_head_that_cannot_be_measured_is_broken_and_a_machine_without_means_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    broken = _result(monkeypatch, Machine(raises={HEAD: machine.BROKEN}))
    assert (broken.verdict, verdict.overall([broken], [])) == (verdict.BROKEN, verdict.FAILED)
    lost = _result(monkeypatch, Machine(raises={HEAD: machine.MISSING}))
    assert "base can be measured, but head cannot" in lost.reason
    assert lost.verdict == verdict.BROKEN
    base = _result(monkeypatch, Machine(raises={BASE: machine.BROKEN}))
    assert "base cannot be measured" in base.reason
    assert (base.verdict, verdict.overall([base], [])) == (verdict.BROKEN, verdict.INCONCLUSIVE)
    assert verdict.overall([verdict.broken_in_base("a", "it does not import")], []) == verdict.INCONCLUSIVE
    absent = _result(monkeypatch, Machine(raises={BASE: machine.MISSING, HEAD: machine.MISSING}))
    assert absent.verdict == verdict.NOT_RUN
    # Without a measurement there is no pass.
    assert verdict.overall([absent], []) == verdict.INCONCLUSIVE


@pytest.mark.parametrize("tree", [BASE, HEAD])
def test_times_that_cannot_be_fail_the_run(monkeypatch: pytest.MonkeyPatch, tree: Path) -> None:
    found = _result(monkeypatch, Machine(suspect=frozenset({tree})))
    assert (found.verdict, found.reason) == (verdict.SUSPECT, "it reported 1 s for 2 s")
    assert verdict.overall([found], []) == verdict.FAILED


def test_a_call_that_is_too_long_is_left_out_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    found = _result(monkeypatch, Machine(seconds={BASE: 1.0, HEAD: 1.0}))
    assert found.verdict == verdict.NOT_RUN
    assert "raise --longest" in found.reason


def test_each_launch_is_a_start_of_the_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    started = Machine()
    (samples,) = measured(monkeypatch, started, SamplingPlan(launches=4, pairs=11)).values()
    assert started.started == 4
    assert {kind: [len(launch) for launch in samples.launches(kind)] for kind in KINDS} == dict.fromkeys(
        KINDS, [11] * 4
    )


def test_what_is_gone_fails_and_what_is_new_does_not() -> None:
    good = Result("b", verdict.NOT_SLOWER, "")
    assert verdict.overall([good], [Fate(MISSING, "a", "gone")]) == verdict.FAILED
    assert verdict.overall([good], [Fate(EXTRA, "c", "new")]) == verdict.PASSED
    assert verdict.overall([good], [], ["a: building took 20 s"]) == verdict.FAILED
    assert verdict.EXIT_CODES == {verdict.PASSED: 0, verdict.FAILED: 1, verdict.INCONCLUSIVE: 4}


def _record(results: list[Result]) -> dict[str, object]:
    estimates = {"head": Estimate(1.1, 1.05, 1.2, 0.001, 1.0, 50, 5).__dict__}
    return {
        "base": "a" * 40,
        "head": "b" * 40,
        "verdict": verdict.FAILED,
        "environment": {"gpu": None, "cpu": "a <b> processor", "torch": "2.13", "dirty": True},
        "plan": {"launches": 5, "pairs": 10},
        "results": [
            {"benchmark": r.benchmark, "verdict": r.verdict, "reason": r.reason, "estimates": estimates}
            for r in results
        ],
        "fates": [{"fate": MISSING, "benchmark": "gone", "reason": "base has it"}],
        "wrong": ["x: wrong: new_h was 1"],
        "samples": [{"benchmark": "one", "ratios": {kind: [[1.01, 0.99], [1.1]] for kind in KINDS}}],
    }


def test_a_record_is_drawn_with_every_reason(tmp_path: Path) -> None:
    record = _record([Result("one", verdict.SLOWER, "1.1 of base's time"), Result("two", verdict.NOT_SLOWER, "fine")])
    text = drawing.markdown(json.loads(json.dumps(record)))
    assert text.startswith("### Gate: **fails**\n")
    for part in ("1.1 of base", "base has it", "new&#95;h was 1", "1.100 (1.050-1.200)", "a &#60;b&#62; processor"):
        assert part.replace("&#95;", "_") in text.replace("&#95;", "_"), part
    assert "`bbbbbbbbbb`, with local changes, against `aaaaaaaaaa` on" in text
    console = Console(record=True, width=160, file=io.StringIO())
    drawing.show(record, console)
    assert "gate: fail (exit code 1)" in console.export_text()
    drawing.plot(record, tmp_path / "plot.svg")
    first = (tmp_path / "plot.svg").read_bytes()
    drawing.plot(record, tmp_path / "again.svg")
    assert first == (tmp_path / "again.svg").read_bytes()


def test_samples_without_a_problem_are_not_there_before_they_are_taken() -> None:
    assert verdict.estimates({"a": Samples({})}, "head", RULE) == {}
