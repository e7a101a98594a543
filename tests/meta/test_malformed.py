"""Malformed reports and options give a sentence, never a traceback, and nothing is overwritten."""

from __future__ import annotations

import copy
import io
import json
import sys
from contextlib import redirect_stderr, redirect_stdout, suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.__main__ import main
from harness.errors import HarnessError, UsageError
from harness.report.report import SCHEMA, Report, jsonable
from harness.report.shards import RunPlan
from harness.running.selection import Selection, slots
from tests.meta.reports import one_of_each

COMMANDS = ("show", "markdown", "junit", "badge", "validate", "merge", "diff")
_PLAN = RunPlan("asked", "files", finished=(1,), asked=6)
_REPORT = replace(one_of_each(), plan=_PLAN)
_RECORD = jsonable({"schema": SCHEMA, **asdict(_REPORT)})
_VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
_QUIET = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a document."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, entry in inner for place in _places(entry, (*path, key)))]


def _with(record: Any, place: tuple[Any, ...], value: Any, gone: bool) -> Any:
    if not place:
        return value
    changed = copy.deepcopy(record)
    at = changed
    for key in place[:-1]:
        at = at[key]
    if gone:
        del at[place[-1]]
    else:
        at[place[-1]] = value
    return changed


def _run(*arguments: str) -> tuple[int, str]:
    """The exit code and the standard error of `python -m harness ARGUMENTS`; an exception is a failure of the test."""
    out, err, before = io.StringIO(), io.StringIO(), sys.argv
    sys.argv = ["harness", *arguments]
    try:
        with redirect_stdout(out), redirect_stderr(err):
            return main(), err.getvalue()
    finally:
        sys.argv = before


def _holds(path: Path, command: str, content: bytes) -> None:
    path.write_bytes(content)
    output = path.with_name("output.json")
    output.write_text("precious")
    files = [str(path), str(path)] if command == "diff" else [str(path)]
    code, err = _run(command, *files, *(["-o", str(output)] if command == "merge" else []))
    assert code in (0, 1, 2)
    assert "Traceback" not in err
    assert (code == 2) == err.startswith("error: "), err
    assert path.read_bytes() == content
    assert output.read_text() == "precious"


@_QUIET
@given(data=st.data(), command=st.sampled_from(COMMANDS))
def test_a_report_with_one_part_replaced(tmp_path: Path, data: st.DataObject, command: str) -> None:
    place = data.draw(st.sampled_from(_places(_RECORD)))
    gone = bool(place) and data.draw(st.booleans())
    document = _with(_RECORD, place, data.draw(_VALUES), gone)
    _holds(tmp_path / "report.json", command, json.dumps(document).encode())


@_QUIET
@given(content=st.binary(max_size=60) | st.text(max_size=60).map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_a_file_that_is_anything(tmp_path: Path, content: bytes) -> None:
    _holds(tmp_path / "report.json", "show", content)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[" * 100_000, "nested too deeply"),
        ('{"schema": 1, "schema": 1}', "it has 'schema' twice in one object"),
        ('{"schema": 1e999}', "it has 1e999, which is not valid JSON"),
        ("1" * 10_000, "is not JSON"),
        ("\udcff", "is not JSON"),
    ],
    ids=["deep", "twice", "infinite", "long", "bytes"],
)
def test_what_a_reader_of_json_trips_over(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "report.json"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(UsageError, match=says):
        Report.read(path)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"finished": [2]}, "plan.finished has 2, but plan.shards is 1"),
        ({"begun": []}, "plan.finished has shards that plan.begun lacks"),
        ({"finished": []}, "complete was true, but plan.finished has"),
        ({"shards": 2}, "complete was true, but plan.finished has"),
        ({"shards": 0}, "plan.shards was 0, but should be 1 or more"),
    ],
)
def test_a_plan_that_contradicts_itself(tmp_path: Path, changes: dict[str, Any], says: str) -> None:
    path = tmp_path / "report.json"
    path.write_text(json.dumps({**_RECORD, "plan": {**_RECORD["plan"], **changes}}))
    with pytest.raises(UsageError, match=says):
        Report.read(path)


@_QUIET
@given(text=st.text(max_size=30) | st.from_regex(r"lltm=[\w./]{0,12}:\w{0,6}", fullmatch=True))
def test_a_candidate_that_is_anything(text: str) -> None:
    with suppress(HarnessError):  # any other exception fails the test
        slots(Selection(candidates=(text,)))
