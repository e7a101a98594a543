"""Scenarios of tests/scenarios, on which the suite once failed a right implementation: it passes all of them there."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from backends.base import CPU, CUDA_EMULATED
from harness.discovery import operator
from harness.errors import UsageError
from harness.judging.scenario import Scenario
from harness.judging.subject import Subject
from tests.meta.tiers import AGAIN
from tools.soak import kept
from tools.soak.kept import alarms, keep, name_of, read
from tools.soak.state import State

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / kept.FOLDER).glob("*"))
#: Seven of seven right implementations failed here, on an NVIDIA H200.
PUBLISHED = Scenario(
    sizes=(("batch", 1), ("input_features", 6), ("hidden_size", 8), ("output_size", 31)),
    values="huge-hidden",
    layouts=(("output_weights", "expanded"),),
    cotangents=(("output", "ones"),),
)
FIRST = ROOT / kept.FOLDER / "mlp-bfloat16-huge-hidden-988302.json"


#: Every backend with emulated sources takes a build.
PLACES = [pytest.param(CPU), pytest.param(CUDA_EMULATED, marks=pytest.mark.long(AGAIN))]


@pytest.mark.parametrize("device", PLACES)
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_no_right_implementation_fails(file: Path, device: str) -> None:
    form, dtype, scenario = read(file)
    found = alarms(form, dtype, scenario, device)
    assert not found, "\n".join(f"{who}: {why}" for who, why in found.items())


def test_the_first_false_alarm_is_there() -> None:
    assert FIRST in FILES
    form, dtype, scenario = read(FIRST)
    assert (form.title, dtype, scenario) == ("mlp", "bfloat16", PUBLISHED)
    assert len(json.loads(FIRST.read_text())["failed"]) == 7


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_files_are_named_after_their_scenario(file: Path) -> None:
    assert file.name == f"{name_of(json.loads(file.read_text()))}.json"


def test_a_wrong_implementation_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    mlp = operator("mlp")

    def wrong(*inputs: torch.Tensor) -> torch.Tensor:
        return 1.5 * mlp.forward(*inputs)[0]

    wrong_one = Subject(mlp, "wrong", "cpu", torch.float32, wrong)
    monkeypatch.setattr(kept, "right", lambda *place: (wrong_one,) if place == ("mlp", "float32", "cpu") else ())
    (reason,) = alarms(mlp, "float32", Scenario.of(mlp.case("small")), CPU).values()
    assert reason.startswith("fail: output was")


def _find(**changes: Any) -> dict[str, Any]:
    found = json.loads(FIRST.read_text())
    return {**found, **changes}


def test_finds_are_moved_into_files(tmp_path: Path) -> None:
    scenario = {**_find()["scenario"], "seed": 3}
    state = State({"runs": [], "places": [], "finds": [_find(), _find(scenario=scenario)]})
    files = keep(state, tmp_path)
    assert files[0].name == FIRST.name
    assert len(set(files)) == 2
    assert not state.finds
    assert read(files[0])[2] == PUBLISHED
    assert read(files[1])[2] == replace(PUBLISHED, seed=3)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"verdict": "pass"}, "verdict was 'pass', but should be one of fail, no-evidence, error"),
        ({"form": "rows"}, "form was 'rows', but should be one of ''"),
        (
            {"scenario": {"sizes": {"batch": 1}, "values": "normal", "seed": 0}},
            "sizes had batch, but should have b",
        ),
    ],
)
def test_other_files_are_refused(changes: dict[str, Any], says: str, tmp_path: Path) -> None:
    file = tmp_path / "kept.json"
    file.write_text(json.dumps(_find(**changes)))
    with pytest.raises(UsageError, match=says):
        read(file)


@pytest.mark.parametrize(
    ("field", "value", "says"),
    [
        ("values", "odd", "values was 'odd', but should be one of normal, "),
        ("layouts", {"weight": "strided"}, "layouts was 'weight', but should be one of input, "),
        ("layouts", {"input": "odd"}, "a layout was 'odd', but should be one of contiguous, "),
        ("cotangents", {"h": "ones"}, "cotangents was 'h', but should be one of output"),
        ("cotangents", {"output": "two"}, "a cotangent was 'two', but should be one of normal, "),
        ("wanted", ["output"], "wanted was 'output', but should be one of input, "),
    ],
)
def test_unknown_names_in_a_scenario_are_refused(field: str, value: object, says: str, tmp_path: Path) -> None:
    file = tmp_path / "kept.json"
    file.write_text(json.dumps(_find(scenario={**_find()["scenario"], field: value})))
    with pytest.raises(UsageError, match=says):
        read(file)
