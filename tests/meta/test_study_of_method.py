"""The study of the method calls what it says, of every operator, and its record holds what the tables show."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import torch

from harness import discovery
from spec.contract import DTYPES
from tests.meta.conftest import ROOT
from tests.meta.tiers import TOOL
from tests.zoo import registry as zoo
from tools.study import candidates, method, running, tables
from tools.study.judges import JUDGES

SEED = 1
METHOD = (ROOT / "docs" / "method.md").read_text()


def test_every_operator_is_studied_or_the_page_says_that_it_is_not() -> None:
    measure = "name it in tools/study/candidates.py, then python -m tools.study.method --operator NAME -o RECORD"
    (words,) = re.findall(r"\*\*This study\.\*\* It has (.*?) and not (.*?)\.", METHOD, flags=re.DOTALL)
    studied, not_studied = (set(re.findall(r"`(\w+)`", text)) for text in words)
    assert studied == set(candidates.OPERATORS) == set(method.SEEDS)
    assert studied | not_studied == set(discovery.operators()), measure
    for names in (candidates.LEFT_OUT, candidates.AT_EDGES, candidates.ONLY_IN, candidates.HONEST):
        assert list(names) == list(candidates.OPERATORS)


@pytest.mark.parametrize("of", candidates.OPERATORS)
def test_the_named_faults_exist(of: str) -> None:
    known = {fault.name for fault in zoo.faults(of)}
    assert {*candidates.LEFT_OUT[of], *candidates.AT_EDGES[of], *candidates.ONLY_IN[of]} <= known
    assert {fault.backend for dtype in DTYPES for fault in candidates.edge_faults(of, dtype)} == {
        *candidates.AT_EDGES[of]
    }
    assert candidates.value_faults(of)


@pytest.mark.parametrize("of", candidates.OPERATORS)
def test_errors_of_a_part_are_errors_of_that_size(of: str) -> None:
    """Each one changes some gradient and no output, and a larger error changes more."""
    scenario = running.scenarios(of, SEED)[1][2]
    form = discovery.operator(of)
    right = running.call(candidates.honest(of, torch.float64), form, scenario)
    outputs = [arg.name for arg in form.outputs]
    moved: dict[str, list[float]] = {}
    for graded in candidates.graded(of, torch.float64):
        got = running.call(graded, form, scenario)
        assert all(torch.equal(got[name], right[name]) for name in outputs)
        error = max(float((got[name] - value).norm() / value.norm()) for name, value in right.items())
        moved.setdefault(graded.backend.partition(" ")[2], []).append(error)
    for errors in moved.values():  # of a sequence it adds up over the steps
        assert 0 < errors[0] < 0.05
        assert errors == sorted(errors)


@pytest.fixture(scope="module")
def record() -> dict[str, Any]:
    """A study of one seed, one operator and one dtype."""
    return {**method.started(), "operators": {"mlp": method.study("mlp", 1, dtypes=(torch.float32,))}}


@pytest.mark.long(TOOL)
def test_a_study_of_one_seed_counts_every_call(record: dict[str, Any]) -> None:
    part = record["operators"]["mlp"]
    controls = part["counts"]["float32"]["controls"]
    assert {"python-autograd", "aten-cpp", "split_product"} <= set(controls) == set(part["controls"])
    calls = len(running.scenarios("mlp", 0))
    for by_size in controls.values():
        assert by_size["small"]["calls"] + by_size["larger"]["calls"] == calls
        assert by_size["pooled"]["calls"] == 1
    assert tables.tally(record, "controls", "ours", tables.SINGLE) == [0, calls * len(controls)]
    rejected, pools = tables.tally(record, "faults", "ours", (tables.POOLED,), operators=("mlp",))
    assert pools > 0
    assert rejected == pools
    assert tables.tally(record, "graded", "allclose 1e-2", (tables.POOLED,), only="0.1 ")[0] == 0


@pytest.mark.long(TOOL)
def test_what_is_written_is_read_again(record: dict[str, Any]) -> None:
    text = method.written(record)
    assert json.loads(text) == record
    assert max(map(len, text.splitlines())) < 300


@pytest.mark.long(TOOL)
def test_tables_name_every_judge_and_operator(record: dict[str, Any]) -> None:
    drawn = tables.drawn(record)
    for name in ("judges", "false alarms, calls", "detections, pooled", "false alarms, operators", "graded, pooled"):
        assert [judge.name for judge in JUDGES] == [
            line.split(" | ")[0][2:] for line in drawn[name].splitlines()[2:] if not line.startswith("| number")
        ]
    assert "mlp" in drawn["detections, operators"].splitlines()[0]
    assert "output 128" in drawn["longest sums"]


def test_an_operator_is_added_to_a_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The record is written after each operator, and keeps those that are not measured anew."""
    monkeypatch.setattr(method, "study", lambda of, seeds, _: {"cpu_seconds": 0, "of": of, "seeds": seeds})
    path = tmp_path / "new" / "record.json"
    for given in (["--operator", "mlp"], ["--operator", "lltm", "--seeds", "3"]):
        monkeypatch.setattr("sys.argv", ["method", *given, "-o", str(path)])
        method.main()
    found = json.loads(path.read_text())["operators"]
    assert list(found) == ["lltm", "mlp"]
    assert (found["lltm"]["seeds"], found["mlp"]["seeds"]) == (3, method.SEEDS["mlp"])
