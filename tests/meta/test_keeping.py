"""The quick check of a schema says yes only where jsonschema has no error; and it says so of what is committed."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from harness.bench import record as bench
from harness.report import schema
from harness.report.keeping import check_of
from harness.report.report import Report
from harness.report.upgrade import upgraded
from tests.meta.reports import RESULTS, attacking, cell, in_forms, one_of_each

#: What stands in the place of each part of a document, one after the other.
ODD = (None, True, 0, -1, 1.5, "", "nan", "fail", 10**7, [None], [0] * 13, [0] * 14, {})


def _written(report: Report, folder: Path) -> dict[str, Any]:
    report.write(folder / "written.json")
    found: dict[str, Any] = json.loads((folder / "written.json").read_text())
    return found


def _places(part: Any, *place: str | int) -> Iterator[tuple[str | int, ...]]:
    """All places in a document; of a long list the first of its items."""
    keys: list[str | int] = list(part) if isinstance(part, dict) else [*range(min(len(part), 1))]
    for key in keys:
        yield (*place, key)
        if isinstance(part[key], dict | list):
            yield from _places(part[key], *place, key)


def _changed(document: Any) -> Iterator[Any]:
    """The document with one part left out, or with something else in its place."""
    for *place, last in _places(document):
        for value in (..., *ODD):
            made = copy.deepcopy(document)
            part = made
            for key in place:
                part = part[key]
            if value is ...:
                del part[last]
            else:
                part[last] = value
            yield made


@pytest.mark.parametrize("make", [one_of_each, attacking, in_forms])
def test_a_report_is_seen_to_keep_its_schema(make: Any, tmp_path: Path) -> None:
    assert check_of(schema.schema())(_written(make(), tmp_path))


def _small(tmp_path: Path) -> dict[str, Any]:
    """A report of a part of a run, of one cell, which has most of what a cell may have."""
    found = _written(in_forms(), tmp_path)
    figures = {"scenarios": 3, "worst": {"used": "nan", "seen": 0.5}, "ulps": {"outputs": [0] * 13}, "odd": 1}
    one = json.loads(json.dumps({**vars(cell(figures={**figures, "forms": {"rows": figures}}))}))
    suite = {**found["suite"], "properties": found["suite"]["properties"][:1]}
    plan = {"digest": "d", "sources": "s", "shards": 2, "begun": [1], "finished": [1], "asked": 1}
    return {**found, "plan": plan, "suite": suite, "cells": [one]}


def test_what_it_says_is_kept_is_kept(tmp_path: Path) -> None:
    document = _small(tmp_path)
    check, asked = check_of(schema.schema()), Draft202012Validator(schema.schema())
    assert check(document)
    said, kept = 0, 0
    for made in _changed(document):
        is_kept = asked.is_valid(made)
        assert is_kept or not check(made), made
        said += check(made)
        kept += is_kept
    assert said > 100
    assert said >= 0.9 * kept, "jsonschema is asked of most that is right, which takes long"


@pytest.mark.parametrize(
    ("file", "says"),
    [("operators.json", schema.FILE), ("torch-compile.json", schema.FILE), ("bench-lltm-bfloat16.json", None)],
)
def test_records_are_seen_to_keep_it(file: str, says: Path | None) -> None:
    """Of these jsonschema, which takes 5 s of the largest, is not asked."""
    document = json.loads((RESULTS / "nvidia-h200" / file).read_text())
    assert check_of(schema.schema(says or bench.FILE))(document if says is None else upgraded(document))


@pytest.mark.parametrize("part", [{"pattern": "a"}, {"enum": [1]}, {"const": True}, {"minProperties": 1}])
def test_of_a_keyword_that_is_not_known_it_says_nothing(part: dict[str, Any]) -> None:
    assert not check_of({"properties": {"name": part}})({"name": "a"})
