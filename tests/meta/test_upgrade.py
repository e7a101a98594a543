"""A report of version 1 or 2 is read as one of the present version, and is drawn from its own words alone."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.properties import all_properties
from harness.rendering import facts, html
from harness.report import figures
from harness.report.levels import LEVELS, PRODUCTION, level_of
from harness.report.report import SCHEMA, Report, load
from harness.report.upgrade import UPGRADED
from tests.meta.reports import CPU, MACHINE, PLANTED


def _first(**changed: Any) -> dict[str, Any]:
    """A report as version 1 had it: the drift of a recurrence was in the names of figures."""
    names = {"operator": "lltm", "backend": "mine", "device": "cpu", "dtype": "float32"}
    drift = {"new_h after 1": {"error": 1.0, "allowed": 4.0}, "new_h after 10": {"error": 3.0, "allowed": 4.0}}
    cells = [
        {**names, "property": "recurrence", "verdict": "pass", "figures": {"horizon": {"new_h": 1000}, **drift}},
        {**names, "property": "sizes", "verdict": "pass", "figures": {"forms": {"op[a]": dict(drift)}}},
    ]
    return {"schema": 1, "environment": MACHINE, "complete": True, "cells": cells, **changed}


def _written(tmp_path: Path, document: dict[str, Any]) -> Path:
    path = tmp_path / "report.json"
    path.write_text(json.dumps(document))
    return path


def test_drift_becomes_a_list(tmp_path: Path) -> None:
    assert UPGRADED == (1, 2)
    path = _written(tmp_path, _first())
    assert load(path)["schema"] == SCHEMA
    report = Report.read(path)
    recurrence, sizes = report.cells
    assert figures.drift(recurrence) == [("new_h", 1, 0.25), ("new_h", 10, 0.75)]
    assert figures.drift(sizes) == [("op[a] new_h", 1, 0.25), ("op[a] new_h", 10, 0.75)]
    assert recurrence.figures["horizon"] == {"new_h": 1000}


def test_a_report_without_a_suite_is_drawn_from_its_cells(tmp_path: Path) -> None:
    report = Report.read(_written(tmp_path, _first()))
    assert [known.name for known in report.suite.properties] == ["recurrence", "sizes"]
    assert facts.never_asked(report) == {}
    assert "Values and gradients are right in float32." in html.page(report)


def test_it_is_written_in_the_present_version(tmp_path: Path) -> None:
    report = Report.read(_written(tmp_path, _first()))
    report.write(tmp_path / "again.json")
    assert json.loads((tmp_path / "again.json").read_text())["schema"] == SCHEMA
    assert Report.read(tmp_path / "again.json") == report


def test_what_is_malformed_is_left_for_the_schema_to_tell(tmp_path: Path) -> None:
    for cells in ("none", [3], [{"figures": 4}], [{"figures": {"forms": 5, "h after 1": 6}}]):
        document = load(_written(tmp_path, _first(cells=cells)))
        assert document["cells"] == cells


@pytest.mark.parametrize("version", UPGRADED)
def test_each_property_gets_its_level(tmp_path: Path, version: int) -> None:
    document = _first(schema=version)
    if version > 1:
        document["suite"] = _suite("recurrence", "sizes", "a-property-of-nobody")
    report = Report.read(_written(tmp_path, document))
    recurrence, sizes = report.cells
    assert [level_of(found, report.suite) for found in (recurrence, sizes)] == ["gradients", "values"]
    assert level_of(replace(sizes, property="a-property-of-nobody"), report.suite) == PRODUCTION
    assert report.required == PRODUCTION
    assert [found.level for found in report.cells] == ["", ""]


def _suite(*names: str) -> dict[str, Any]:
    numbers = {"claim": "", "view": "", "noticed": 0, "asked": 0, "faults": 0}
    lists: dict[str, Any] = {"operators": [], "backends": [], "devices": [], "dtypes": []}
    return {**lists, "properties": [{"name": name, **numbers} for name in names]}


@pytest.mark.parametrize("path", [CPU, PLANTED], ids=lambda path: path.stem)
def test_a_committed_record_has_the_levels_of_today(path: Path) -> None:
    """No committed property has changed its level since; one that does needs a new version of the format."""
    assert json.loads(path.read_text())["schema"] in (2, 3)
    found = {known.name: known.level for known in Report.read(path).suite.properties}
    today = {name: known.level for name, known in all_properties().items()}
    assert found == {name: today[name] for name in found}
    assert set(found.values()) == set(LEVELS)
