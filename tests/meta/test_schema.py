"""The schema of reports: the suite's own reports satisfy it, and errors in others are described in helpful messages."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from harness.__main__ import main
from harness.bench import record as bench
from harness.errors import UsageError
from harness.report import report as report_module
from harness.report import schema, strict_json
from harness.report.cell import FAIL, PASS, VERDICTS, Cell
from harness.report.report import SCHEMA, Report
from harness.report.shards import RunPlan
from harness.report.upgrade import upgraded
from harness.running import environment, suite
from tests.meta.reports import CPU, MACHINE, RESULTS, SUITE, attacking, cell, in_forms, of, one_of_each

ROOT = Path(__file__).parents[2]


def record(tmp_path: Path, report: Report) -> dict[str, Any]:
    report.write(tmp_path / "written.json")
    found: dict[str, Any] = json.loads((tmp_path / "written.json").read_text())
    return found


@pytest.mark.parametrize(("file", "version"), [(schema.FILE, SCHEMA), (bench.FILE, bench.SCHEMA)])
def test_the_schema_is_one(file: Path, version: int) -> None:
    found = schema.schema(file)
    Draft202012Validator.check_schema(found)
    assert found["$schema"].endswith("2020-12/schema")
    assert found["$id"].endswith(f":{version}")
    assert found["properties"]["schema"]["const"] == version


#: Records that are neither reports nor bench records. The samples of the gate's study are read by the study alone, and
#: tested by the table that it draws (tests/meta/gate/test_study.py); so is the state of a soak, and a sweep
#: (tests/meta/test_sweep.py). The gains of timing attacks are compared with docs/method.md
#: (tests/meta/test_readme.py). The score of mutation reads which mutants a GPU noticed
#: (tests/meta/test_mutation_on_gpu.py). What single kernels take is compared with docs/performance.md
#: (tests/meta/test_kernel_times.py); so are the times of a verdict (tests/meta/test_verdict_time.py), and a sweep
#: before a change (tests/meta/test_sweep.py).
_NO_REPORTS = (
    "early-launch.json",
    "gate-study.json",
    "kernels-mlp.json",
    "layer_norm-instances.json",
    "lltm-few-rows.json",
    "lltm-weights-before.json",
    "mutation-on-gpu.json",
    "soak.json",
    "timing-attacks.json",
    "verdict-time.json",
)
#: The committed records of the GPU and a report of the CPU, by file.
COMMITTED = {
    path: json.loads(path.read_text())
    for path in sorted([CPU, *(RESULTS / "nvidia-h200").glob("*.json")])
    if path.name not in _NO_REPORTS and not path.name.startswith("sweep-")
}


@pytest.mark.parametrize("path", COMMITTED, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_what_is_committed_keeps_its_schema(path: Path) -> None:
    """A bench record has the field `kind`; a report has none."""
    document = COMMITTED[path]
    kind = document.get("kind")
    assert kind in (None, bench.KIND)
    assert (schema.breaches(document, bench.FILE) if kind == bench.KIND else schema.problems(upgraded(document))) == []


def test_documents_of_both_kinds_are_committed() -> None:
    assert {document.get("kind") for document in COMMITTED.values()} == {None, bench.KIND}


@pytest.mark.parametrize("make", [one_of_each, attacking, in_forms])
def test_what_is_written_keeps_it(tmp_path: Path, make: Any) -> None:
    assert schema.problems(record(tmp_path, make())) == []


def test_this_machine_keeps_it(tmp_path: Path) -> None:
    """Every fact that the suite records is described in the schema, with its type."""
    described = environment.describe()
    known = schema.schema()["$defs"]["environment"]["properties"].keys()
    assert described.keys() == known - {
        "sandbox",
        "candidates",
        "quick",
    }  # of a run that judged a candidate, or was quick
    assert schema.problems(record(tmp_path, Report.of([cell()], described, suite.describe()))) == []


def test_cells_and_verdicts_are_those_of_the_suite() -> None:
    of_cell = schema.schema()["$defs"]["cell"]["properties"]
    assert of_cell.keys() == {field.name for field in fields(Cell)}
    assert of_cell["verdict"]["enum"] == list(VERDICTS)


#: (path, new value, the message). None removes the field.
WRONG: list[tuple[tuple[Any, ...], Any, str]] = [
    (("complete",), "yes", "complete was 'yes', but should be true or false"),
    (("cells",), {}, "cells was {}, but should be a list"),
    (("cells", 0), 3, "cells[0] was 3, but should be an object"),
    (
        ("cells", 1, "verdict"),
        "excellent",
        "cells[1].verdict was 'excellent', but should be one of pass, fail, declared",
    ),
    (("cells", 1, "reason"), "", "cells[1].reason was '', but should be a text that is not empty, since it is no pass"),
    (("cells", 1, "reason"), None, "cells[1] lacks reason"),
    (("cells", 0, "backend"), "", "cells[0].backend was '', but should be a text that is not empty"),
    (("cells", 0, "seconds"), -1, "cells[0].seconds was -1, but should be 0 or more"),
    (("cells", 0, "seconds"), "long", "cells[0].seconds was 'long', but should be a number"),
    (("cells", 0, "figures"), [], "cells[0].figures was [], but should be an object"),
    (("cells", 0, "figures", "worst"), {}, "cells[0].figures.worst lacks used"),
    (
        ("cells", 0, "figures", "worst"),
        {"used": "much"},
        "cells[0].figures.worst.used was 'much', but should be a number, or",
    ),
    (("cells", 0, "figures", "drift"), [1], "cells[0].figures.drift[0] was 1, but should be an object"),
    (("suite", "properties", 0, "claim"), None, "suite.properties[0] lacks claim"),
    (("suite", "properties", 0, "level"), "high", "suite.properties[0].level was 'high', but should be one of values,"),
    (("suite", "properties", 0, "level"), None, "suite.properties[0] lacks level"),
    (("cells", 1, "level"), "high", "cells[1].level was 'high', but should be one of values, gradients, safe"),
    (("required",), None, "the document lacks required"),
    (("required",), "all", "required was 'all', but should be one of values, gradients, safe, pytorch, production"),
    (("suite", "backends", 0), "", "suite.backends[0] was '', but should be a text that is not empty"),
    (("environment", "dirty"), "a bit", "environment.dirty was 'a bit', but should be true or false or null"),
    (("environment", "gpus"), -2, "environment.gpus was -2, but should be 0 or more"),
    (("environment", "torch"), None, "environment lacks torch"),
    (("environment",), None, "the document lacks environment"),
    (("schema",), 4, "schema was 4, but should be 3"),
]


@pytest.mark.parametrize(("place", "value", "says"), WRONG)
def test_what_is_wrong_is_told_with_its_place(tmp_path: Path, place: tuple[Any, ...], value: Any, says: str) -> None:
    document = record(tmp_path, of(cell(), cell(FAIL, property="layouts"), gpus=0))
    *into, last = place
    inner: Any = document
    for part in into:
        inner = inner[part]
    if value is None:
        del inner[last]
    else:
        inner[last] = value
    (problem,) = schema.problems(document)
    assert problem.startswith(says)


@pytest.mark.parametrize(
    ("figures", "asked", "says"),
    [
        ({}, 37, "plan.finished has every part, but of 37 cells there are 1"),
        ({"cut off": "Timeout"}, 1, "plan.finished has every part, but cells[0] was cut off"),
    ],
    ids=["fewer", "cut-off"],
)
def test_what_lacks_cells_is_not_complete(tmp_path: Path, figures: dict[str, Any], asked: int, says: str) -> None:
    plan = RunPlan("asked", "files", finished=(1,), asked=asked)
    document = record(tmp_path, replace(of(cell(figures=figures)), plan=plan))
    assert schema.problems(document) == [says]
    with pytest.raises(UsageError, match=re.escape(says)):
        Report.read(tmp_path / "written.json")


def test_a_report_that_would_take_minutes_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "report.json"
    of(cell(), cell(property="layouts")).write(path)
    monkeypatch.setattr(report_module, "MOST_CELLS", 1)
    with pytest.raises(UsageError, match="has 2 cells, but should have at most 1: give a report of fewer"):
        Report.read(path)
    monkeypatch.setattr(strict_json, "MOST_BYTES", 100)
    with pytest.raises(UsageError, match="has 0 MB, but should have at most 0 MB: give a report of fewer"):
        Report.read(path)


def test_two_cells_about_the_same_are_told(tmp_path: Path) -> None:
    document = record(tmp_path, of(cell(), cell(FAIL)))
    assert schema.problems(document) == ["cells[1] is about lltm/mine/cpu/float32/sizes, but so is cells[0]"]
    (found,) = Report.of([cell(), cell(FAIL), cell()], MACHINE, SUITE).cells
    assert found.verdict == FAIL, "of two verdicts with one key a new report keeps the worse one"


def test_reading_tells_of_three_problems_and_counts_the_rest(tmp_path: Path) -> None:
    document = record(tmp_path, of(*(cell(property=f"p{number}") for number in range(9))))
    for row in document["cells"]:
        row["verdict"] = "odd"
    path = tmp_path / "odd.json"
    path.write_text(json.dumps(document))
    with pytest.raises(
        UsageError, match=r"cells\[0\].verdict was 'odd'.*; and 6 more, see `python -m harness validate"
    ):
        Report.read(path)


@pytest.mark.parametrize("constant", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_numbers_that_json_lacks_are_refused(tmp_path: Path, constant: str) -> None:
    path = tmp_path / "report.json"
    of(cell(figures={"a": 0.125})).write(path)
    path.write_text(path.read_text().replace("0.125", constant))
    with pytest.raises(UsageError, match=f"is not JSON: it has {constant}"):
        Report.read(path)


def test_another_record_is_named() -> None:
    with pytest.raises(UsageError, match=r"bench.json is a record of the kind 'bench', but should be a report"):
        Report.read(ROOT / "results" / "cpu" / "bench.json")


def validate(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> int:
    monkeypatch.setattr(sys, "argv", ["harness", "validate", *map(str, arguments)])
    return main()


def test_validate_tells_of_every_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    good, bad, none = tmp_path / "good.json", tmp_path / "bad.json", tmp_path / "none.json"
    one_of_each().write(good)
    document = record(tmp_path, of(cell(), cell(property="layouts")))
    for row in document["cells"]:
        row["verdict"] = "odd"
    bad.write_text(json.dumps(document))
    assert validate(monkeypatch, good) == 0
    assert capsys.readouterr().out == f"{good}: a report of version 3, 6 cells\n"
    assert validate(monkeypatch, good, bad, none, "--limit=1") == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(f"{good}: a report")
    assert lines[1].startswith(f"{bad}: cells[0].verdict was 'odd'")
    assert lines[2:] == [f"{bad}: and 1 more", f"there is no report {none}; a run writes one, `nox -s cpu` for example"]


def test_the_page_on_the_format_names_every_field() -> None:
    page = (ROOT / "docs" / "report-format.md").read_text()
    assert f"version {SCHEMA}" in page
    defined = schema.schema()["$defs"]
    for part in ("environment", "suite", "cell", "figures", "worst"):
        for name in defined[part]["properties"]:
            assert re.search(rf"`{name}`", page), f"docs/report-format.md does not describe {part}.{name}"


def test_a_pass_is_what_needs_no_reason(tmp_path: Path) -> None:
    document = record(tmp_path, of(cell(PASS)))
    del document["cells"][0]["reason"]
    assert schema.problems(document) == []
