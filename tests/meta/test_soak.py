"""The soak finds false alarms, counts honestly, and goes on where it stopped."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from harness.discovery import operator
from harness.errors import UsageError
from harness.judging import oracle
from harness.judging.scenario import Scenario
from harness.judging.subject import Subject
from harness.report.schema import breaches
from tests.meta.conftest import environment
from tests.meta.tiers import TOOL, first_alone
from tools.soak import __main__ as command
from tools.soak import batch, calling, implementations, soaking, table, workers
from tools.soak.batch import Counts, Outcome, Place, drawn
from tools.soak.calling import ERROR, FAIL, NO_EVIDENCE, PASS, Result
from tools.soak.implementations import right
from tools.soak.scenario_json import from_json, to_json
from tools.soak.shrinking import shrunk
from tools.soak.soaking import Limits, Soak
from tools.soak.state import ALIKE, FIND, State
from tools.soak.workers import BatchError, Worker

MLP = operator("mlp")
PLACE = Place("mlp", "", "float32", "cpu")
WHERE = {"commit": "0" * 40, "torch": "2.0", "machine": "a processor"}
SMALL = Scenario.of(MLP.case("small"))


def _subject(name: str, factor: float) -> Subject:
    """A right implementation, or one whose gradient of hidden_bias is wrong for more than two hidden units."""

    def function(*inputs: Tensor) -> Tensor:
        input, hidden_weights, hidden_bias, *rest = inputs
        if factor != 1.0 and hidden_bias.numel() > 2:
            hidden_bias = factor * hidden_bias + (1 - factor) * hidden_bias.detach()
        return MLP.forward(input, hidden_weights, hidden_bias, *rest)[0]

    return Subject(MLP, name, "cpu", torch.float32, function)


RIGHT, WRONG = _subject("right", 1.0), _subject("wrong", 1.5)


def _plant(monkeypatch: pytest.MonkeyPatch, *subjects: Subject) -> None:
    def planted(operator: str, dtype: str, device: str) -> tuple[Subject, ...]:
        return tuple(replace(subject, device=device) for subject in subjects) if device == "cpu" else ()

    monkeypatch.setattr(batch, "right", planted)


def _ignore(device: str, implementation: str, scenario: Scenario) -> None:
    """No one is told of calls."""


# Drawing


def test_a_seed_draws_the_same_scenarios_each_time_and_none_twice() -> None:
    first = drawn(MLP, 5, 40)
    assert first == drawn(MLP, 5, 40)
    assert len(set(first)) == len(first) > 20
    assert first != drawn(MLP, 6, 40)


def test_places_draw_different_scenarios() -> None:
    seeds = [replace(PLACE, dtype=dtype).seed(number) for dtype in ("float32", "float16") for number in range(3)]
    assert len(set(seeds)) == 6
    assert PLACE.seed(0) == PLACE.seed(0)


def test_a_scenario_survives_json() -> None:
    for contract in (MLP, operator("layer_norm").in_form("images")):
        for scenario in drawn(contract, 1, 50):
            assert from_json(json.loads(json.dumps(to_json(scenario))), contract, "here") == scenario


# Implementations


@pytest.mark.parametrize(
    ("name", "some"),
    first_alone([("softmax", {"Honest", "powers_of_two"}), ("mlp", {"aten-cpp", "Honest", "split_product"})]),
)
def test_every_right_implementation_is_called(name: str, some: set[str]) -> None:
    """Those of MLP are compiled among them."""
    names = [subject.backend for subject in right(name, "float32", "cpu")]
    assert {"python-autograd", "torch-native", *some} <= set(names)
    assert "torch-compile" not in names
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("name", first_alone(["embedding", "layer_norm"]))
def test_what_is_declared_is_left_out(name: str) -> None:
    named = {dtype: [one.backend for one in right(name, dtype, "cpu")] for dtype in ("float32", "bfloat16")}
    assert "torch-native" in named["float32"]
    assert "torch-native" not in named["bfloat16"]


# Calls


def test_a_call_is_judged_as_in_drawn_calls() -> None:
    result = calling.call(RIGHT, SMALL)
    assert (result.verdict, result.gradients) == (PASS, True)
    assert result.calling > 0
    assert result.comparing > 0
    assert calling.call(WRONG, SMALL).verdict == FAIL
    assert calling.call(WRONG, SMALL).tensor == "gradient of hidden_bias"


def test_doubt_of_the_suite_in_itself_is_an_alarm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.judging.tally.reference_fails_too", lambda *given: True)
    result = calling.call(WRONG, SMALL)
    assert result.verdict == NO_EVIDENCE
    assert result.reason.startswith("the suite suspects itself: gradient of hidden_bias was")


def test_an_error_of_the_suite_is_an_alarm(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*given: object) -> None:
        raise ZeroDivisionError("by zero")

    monkeypatch.setattr("harness.judging.tally.expected", broken)
    result = calling.call(RIGHT, SMALL)
    assert (result.verdict, result.reason) == (ERROR, "ZeroDivisionError: by zero")


@pytest.mark.parametrize(
    "scenario",
    [replace(SMALL, wanted=()), replace(SMALL, cotangents=(("output", "missing"),))],
    ids=["none", "missing"],
)
def test_a_call_without_gradients_does_not_count(scenario: Scenario) -> None:
    result = calling.call(RIGHT, scenario)
    assert (result.verdict, result.gradients) == (PASS, False)
    counts = Counts()
    counts.add([result, calling.call(RIGHT, SMALL)])
    assert (counts.scenarios, counts.calls, counts.without_gradients, counts.alarms) == (1, 1, 1, 0)


# Batches


def test_a_batch_without_alarms(monkeypatch: pytest.MonkeyPatch) -> None:
    _plant(monkeypatch, RIGHT, replace(RIGHT, backend="other"))
    outcome = batch.run(PLACE, 0, _ignore, 30)
    counts = outcome.counts["cpu"]
    assert counts.calls + counts.without_gradients == 2 * counts.scenarios > 40
    assert counts.without_gradients > 0
    assert (counts.alarms, counts.alarmed, outcome.finds) == (0, 0, [])
    assert min(counts.drawing, counts.oracle, counts.calling, counts.comparing) > 0
    assert outcome.implementations == {"cpu": ["right", "other"], "cuda-emulated": []}


def test_a_find_names_the_smallest_scenario_and_who_else_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    _plant(monkeypatch, RIGHT, WRONG, replace(WRONG, backend="wrong too"))
    outcome = batch.run(PLACE, 0, _ignore, 30)
    (find,) = outcome.finds
    assert (find["implementation"], find["verdict"], find["tensor"]) == ("wrong", FAIL, "gradient of hidden_bias")
    assert list(find["failed"]) == ["wrong", "wrong too"]
    assert find["passed"] == ["right"]
    assert (find["drawn"]["failed"], find["drawn"]["of"]) == (2, 3)
    assert find["scenario"]["sizes"]["hidden_size"] == 3
    assert find["scenario"]["values"] == "normal"
    assert not {"layouts", "wanted"} & set(find["scenario"])
    assert breaches({**find, **WHERE}, FIND) == []
    counts = outcome.counts["cpu"]
    assert counts.alarms == 2 * counts.alarmed > 2


def test_large_scenarios_are_not_emulated(monkeypatch: pytest.MonkeyPatch) -> None:
    called: dict[str, set[Scenario]] = {"cpu": set(), "cuda-emulated": set()}
    monkeypatch.setattr(batch, "right", lambda operator, dtype, device: (replace(RIGHT, device=device),))
    monkeypatch.setattr(batch, "EMULATED_VOLUME", 100)
    batch.run(PLACE, 0, lambda device, _, scenario: called[device].add(scenario), 30)
    assert called["cuda-emulated"] < called["cpu"]


def test_a_batch_keeps_no_oracle() -> None:
    first = oracle.expected(MLP, SMALL, torch.float32)
    assert oracle.expected(MLP, SMALL, torch.float32) is first
    oracle.forget()
    assert oracle.expected(MLP, SMALL, torch.float32) is not first


def test_shrinking_ends_and_keeps_the_alarm() -> None:
    scenario = next(s for s in drawn(MLP, 0, 100) if len(s.layouts) > 1 and dict(s.sizes)["batch"] > 4)
    kept = scenario.layouts[0]
    smallest = shrunk(scenario, lambda other: kept in other.layouts and dict(other.sizes)["batch"] > 2)
    assert smallest.layouts == (kept,)
    assert dict(smallest.sizes) == {"batch": 3, "input_features": 1, "hidden_size": 1, "output_size": 1}
    assert shrunk(scenario, lambda other: True, tries=0) == scenario
    assert shrunk(scenario, lambda other: False) == scenario


# The state


def _outcome(calls: int, *finds: dict[str, Any]) -> Outcome:
    counts = Counts(scenarios=1, calls=calls, alarms=len(finds), oracle=0.5)
    return Outcome({"cpu": counts, "cuda-emulated": Counts()}, {"cpu": ["right"]}, list(finds))


def _find(tensor: str = "output") -> dict[str, Any]:
    found = batch.find_of(PLACE, "cpu", "right", 0, Result(FAIL, "wrong", tensor), to_json(SMALL))
    return {**found, "failed": {"right": "wrong"}, "passed": []}


def test_a_state_goes_on_where_it_stopped(tmp_path: Path) -> None:
    state = State()
    state.add(PLACE, 0, _outcome(7), WHERE)
    state.write(tmp_path / "state.json")
    again = State.read(tmp_path / "state.json")
    assert again.next_seed(PLACE) == 1
    again.add(PLACE, 1, _outcome(3, _find()), WHERE)
    assert (again.calls(), again.calls("cuda-emulated"), again.next_seed(PLACE)) == (10, 0, 2)
    assert again.row(PLACE, "cpu")["oracle"] == 1.0
    again.write(tmp_path / "state.json")
    assert State.read(tmp_path / "state.json").finds == [{**_find(), **WHERE}]


def test_alike_finds_are_counted_and_few_are_kept() -> None:
    state = State()
    for number in range(ALIKE + 3):
        state.add(PLACE, number, _outcome(1, _find()), WHERE)
    state.add(PLACE, 99, _outcome(1, _find("gradient of input")), WHERE)
    assert len(state.finds) == ALIKE + 1
    assert state.row(PLACE, "cpu")["alarms"] == ALIKE + 4


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda record: record.update(kind="bench"), r"was \('bench', 1\), but should be a state of kind 'soak'"),
        (lambda record: record.update(schema=2), r"was \('soak', 2\), but should be a state of kind 'soak', version 1"),
        (lambda record: record["places"][0].pop("calls"), r"places\[0\] lacks calls"),
        (lambda record: record["places"][0].update(calls=-1), r"places\[0\].calls was -1, but should be 0 or more"),
        (lambda record: record["places"].append(record["places"][0]), "places has mlp//float32/cpu twice"),
        (lambda record: record["finds"][0].pop("scenario"), r"finds\[0\]: the document lacks scenario"),
    ],
)
def test_a_damaged_state_is_refused(change: Any, says: str, tmp_path: Path) -> None:
    state = State()
    state.add(PLACE, 0, _outcome(1, _find()), WHERE)
    file = tmp_path / "state.json"
    state.write(file)
    record = json.loads(file.read_text())
    change(record)
    file.write_text(json.dumps(record))
    with pytest.raises(UsageError, match=says):
        State.read(file)


# The run


class _Instant(Worker):
    """A worker that has the outcome of a batch at once, in this process."""

    began: list[tuple[Place, int]] = []

    def __init__(self, scenarios: int) -> None:
        self.place, self.number = None, 0

    def begin(self, place: Place, number: int) -> None:
        self.place, self.number = place, number
        self.began.append((place, number))

    def result(self) -> Outcome:
        return _outcome(10)

    def is_late(self, limit: float = 0.0) -> bool:
        return False

    def stop(self) -> None:
        self.place = None

    @property
    def is_alive(self) -> bool:
        return True


def test_places_get_the_same_number_of_calls(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(soaking, "Worker", _Instant)
    monkeypatch.setattr(soaking, "ready", lambda pool, timeout: [one for one in pool if one.place is not None])
    monkeypatch.setattr(_Instant, "began", [])
    places = command.places(["mlp", "layer_norm"], ["float32"], "cpu")
    state = State()
    Soak(state, tmp_path / "state.json", places, print).run(Limits(calls=200), workers=1)
    assert state.calls() == 200
    by_operator = {name: sum(row["calls"] for row in state.places if row["operator"] == name) for name in ("mlp",)}
    assert by_operator == {"mlp": 100}
    forms = [row["calls"] for row in state.places if row["operator"] == "layer_norm" and row["device"] == "cpu"]
    assert forms == [20] * 5
    assert {place for place, _ in _Instant.began[:6]} == set(places)
    assert [number for place, number in _Instant.began if place.operator == "mlp"] == list(range(10))
    Soak(state, tmp_path / "state.json", places, print).run(Limits(calls=200), workers=1)
    assert [run["calls"] for run in State.read(tmp_path / "state.json").runs] == [200, 0]


def test_beyond_that_number_they_get_the_same_time(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A batch of layer_norm takes three times as long: after 60 equal calls, it gets a third of the batches."""

    class Slow(_Instant):
        def result(self) -> Outcome:
            assert self.place is not None
            found = _outcome(10)
            found.counts["cpu"].oracle = 3.0 if self.place.operator == "layer_norm" else 1.0
            return found

    monkeypatch.setattr(soaking, "Worker", Slow)
    monkeypatch.setattr(soaking, "ready", lambda pool, timeout: [one for one in pool if one.place is not None])
    monkeypatch.setattr(soaking, "EQUAL", 60)
    places = command.places(["mlp", "layer_norm"], ["float32"], "cpu")
    for total, by_layer_norm in ((120, 60), (480, 120)):
        state = State()
        Soak(state, tmp_path / "state.json", places, print).run(Limits(calls=total), workers=1)
        assert state.calls() == total
        assert sum(row["calls"] for row in state.places if row["operator"] == "layer_norm") == by_layer_norm


def test_several_workers_never_share_a_place(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(soaking, "Worker", _Instant)
    monkeypatch.setattr(soaking, "ready", lambda pool, timeout: pool)
    monkeypatch.setattr(_Instant, "began", [])
    places = command.places(["mlp"], [], "cpu")
    state = State()
    Soak(state, tmp_path / "state.json", places, print).run(Limits(calls=240), workers=9)
    assert state.runs[0]["workers"] == 4
    assert {place for place, _ in _Instant.began[:4]} == set(places)
    assert sorted(number for _, number in _Instant.began) == sorted([*range(6)] * 4)


@pytest.mark.parametrize("place", first_alone([Place("lstm_cell", "biases", "float32", "cpu"), PLACE]), ids=str)
def test_a_process_that_ends_in_a_call_is_an_alarm(place: Place) -> None:
    worker = Worker()
    try:
        worker.begin(place, 0)
        end = time.monotonic() + 200
        while not worker.now and time.monotonic() < end:
            time.sleep(0.05)
        assert not worker.is_late()
        assert worker.is_late(limit=0.0)
        os.kill(worker.pid, signal.SIGKILL)
        outcome = worker.result()
    finally:
        worker.stop()
    (find,) = outcome.finds
    assert (find["verdict"], find["reason"]) == (ERROR, "the process ended with exit code -9 in this call")
    assert find["implementation"] in find["failed"]
    assert breaches({**find, **WHERE}, FIND) == []
    # Which implementation is called when the process ends is a matter of time; MLP's of emulated CUDA are among them.
    assert {device: counts.alarms for device, counts in outcome.counts.items()} == {"cpu": 0} | {find["device"]: 1}
    state = State()
    state.add(place, 0, outcome, WHERE)
    assert state.next_seed(place) == 1


def test_a_call_that_loses_the_device_is_an_alarm(monkeypatch: pytest.MonkeyPatch) -> None:
    lost = "CUDA error: misaligned address"
    monkeypatch.setattr(batch, "lost_device", lambda: lost)
    monkeypatch.setattr(batch.calling, "call", lambda subject, scenario: Result(ERROR, lost))
    noted: list[str] = []
    answer = workers._answer(PLACE, 0, lambda device, name, scenario: noted.append(name), 1)
    assert isinstance(answer, batch.LostDevice)
    assert len(noted) == 1  # no call after it, which would be an alarm too
    worker = Worker(1)
    try:
        worker.place = PLACE
        worker._now.value = json.dumps(["cpu", noted[0], to_json(SMALL)]).encode()
        worker.connection, theirs = multiprocessing.Pipe()
        theirs.send(answer)
        outcome = worker.result()
        assert not worker.is_alive  # so the run starts another
    finally:
        worker.stop()
    (find,) = outcome.finds
    assert find["reason"] == f"the process could use its CUDA device no more («{lost}») in this call"
    assert find["implementation"] == noted[0]


def test_a_control_for_the_cpu_alone_is_not_soaked_on_a_gpu() -> None:
    names = {
        device: {subject.backend for subject in implementations._controls("lltm", torch.float32, device)}
        for device in ("cpu", "cuda")
    }
    assert names["cpu"] - names["cuda"] == {"refuses_gpus", "Scripted"}


def test_a_process_that_ends_before_its_calls_ends_the_run() -> None:
    worker = Worker()
    try:
        worker.begin(PLACE, 4)
        os.kill(worker.pid, signal.SIGKILL)
        with pytest.raises(BatchError, match=r"mlp float32 on cpu, batch 4: the process ended .* before its calls"):
            worker.result()
    finally:
        worker.stop()


def test_errors_of_a_batch_reach_the_parent(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*given: object) -> Outcome:
        raise ZeroDivisionError("by zero")

    monkeypatch.setattr(batch, "run", broken)
    answer = workers._answer(PLACE, 0, _ignore)
    assert isinstance(answer, str)
    assert "ZeroDivisionError: by zero" in answer


# The command


def _command(folder: Path, *options: str) -> list[str]:
    where = ["--state", str(folder / "state.json"), "--operator", "mlp", "--dtype", "float32", "--batch", "20"]
    return [sys.executable, "-m", "tools.soak", *where, *options]


def _text(folder: Path) -> State:
    return State.read(folder / "state.json")


@pytest.mark.long(TOOL)
def test_a_run_and_a_signal_and_a_run(tmp_path: Path) -> None:
    root = Path(__file__).parents[2]
    given: Any = {"cwd": root, "env": environment(), "text": True, "stdout": subprocess.PIPE}
    done = subprocess.run(_command(tmp_path, "--calls", "1"), check=False, timeout=300, **given)
    assert done.returncode == 0, done.stdout
    first = _text(tmp_path)
    assert first.next_seed(PLACE) == 1
    assert first.calls("cpu") > 100
    assert f"{first.calls():,} calls in all" in done.stdout

    run = subprocess.Popen(_command(tmp_path), **given)
    before = (tmp_path / "state.json").stat().st_mtime_ns
    end = time.monotonic() + 200
    while (tmp_path / "state.json").stat().st_mtime_ns == before and time.monotonic() < end:
        time.sleep(0.1)  # until it writes the state, which it does while it runs
    run.send_signal(signal.SIGTERM)
    output, _ = run.communicate(timeout=60)
    assert run.returncode == 0, output
    second = _text(tmp_path)
    assert len(second.runs) == 2
    assert second.calls() == first.calls() + second.runs[1]["calls"]
    assert not list(tmp_path.glob(".*"))


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--operator", "mpl"], "error: unknown operator 'mpl'; did you mean 'mlp'?"),
        (["--dtype", "half"], "error: unknown dtype 'half'; did you mean 'float16'?"),
        (["--keep"], "error: there is no state "),
    ],
)
def test_wrong_usage_is_one_sentence(
    options: list[str], says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command.main(["--state", str(tmp_path / "state.json"), *options]) == 2
    assert capsys.readouterr().err.startswith(says)
    assert not list(tmp_path.iterdir())


def test_minutes_are_above_0(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        command.main(["--minutes", "0"])
    assert "--minutes: was '0', but should be a number of minutes above 0" in capsys.readouterr().err


def test_the_table_tells_the_calls_since_the_last_alarm() -> None:
    state = State()
    for calls, alarms in ((100, 0), (200, 1), (1000, 0), (234, 0)):
        state.runs.append({**WHERE, "seconds": 1.0, "workers": 1, "calls": calls, "alarms": alarms})
    assert "The runs since the last alarm have 1,234 of the calls. " in table.drawn(state)["soak"]
    del state.runs[1]
    assert "since" not in table.drawn(state)["soak"]


def test_finds_are_in_the_exit_code_and_in_the_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    state = State()
    state.add(PLACE, 0, _outcome(1234, _find()), WHERE)
    assert "- mlp float32 cpu: 1 of 1 implementations, fail: wrong" in table.drawn(state)["soak, finds"]
    assert "| mlp | float32 | cpu | 1 | 1 | 1,234 | 1 | 2468 |" in table.drawn(state)["soak, places"]
    state.write(tmp_path / "state.json")
    assert command.main(["--state", str(tmp_path / "state.json"), "--calls", "1"]) == 1
    assert "find: mlp float32 on cpu: right, fail; 1 of 1 right implementations fail there: wrong" in (
        capsys.readouterr().out
    )
