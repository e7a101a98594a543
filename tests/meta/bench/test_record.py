"""The reader of bench records, which every command uses: what it refuses, and its messages."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.__main__ import main
from harness.bench import record
from harness.errors import UsageError
from harness.report.schema import schema
from spec.contract import PHASES
from tests.meta.reports import CPU, bench, timed

ROOT = Path(__file__).parents[3]
MISSING = {"operator": "lltm", "backend": "mine", "device": "cpu", "dtype": None, "case": None, "phase": None}
MISSING |= {"clock": None, "threads": None, "reason": "it is wrong"}

Spoil = Callable[[dict[str, Any]], object]


def _spoiled(tmp_path: Path, spoil: Spoil) -> Path:
    made = json.loads(json.dumps(bench(timed(), missing=[MISSING])))
    spoil(made)
    file = tmp_path / "bench.json"
    file.write_text(json.dumps(made))
    return file


def test_what_is_right_is_read_as_it_is(tmp_path: Path) -> None:
    file = _spoiled(tmp_path, lambda made: made.update(more="a field that no reader knows"))
    assert record.read(file) == json.loads(file.read_text())


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (lambda made: made.pop("ceilings"), "the document lacks ceilings"),
        (lambda made: made["environment"].pop("torch"), "environment lacks torch"),
        (lambda made: made["environment"].update(cpu=3), "environment.cpu was 3, but should be a text or null"),
        (lambda made: made["settings"].update(rounds=0), "settings.rounds was 0, but should be 1 or more"),
        (lambda made: made["ceilings"][0].update(copies=[]), "ceilings[0].copies was [], but should be a list of at "),
        (
            lambda made: made["ceilings"][0]["copies"].append([1]),
            "ceilings[0].copies[2] was [1], but should be a list of at least 2",
        ),
        (
            lambda made: made["ceilings"][0]["copies"].append([1, 2, 3]),
            "ceilings[0].copies[2] was [1, 2, 3], but should be a list of at most 2",
        ),
        (lambda made: made["rows"].append(3), "rows[1] was 3, but should be an object"),
        (lambda made: made["rows"][0].update(backend=""), "rows[0].backend was '', but should be a text that is not e"),
        (lambda made: made["rows"][0].update(phase="sideways"), "rows[0].phase was 'sideways', but should be one of "),
        (lambda made: made["rows"][0].update(threads=0), "rows[0].threads was 0, but should be 1 or more"),
        (
            lambda made: made["rows"][0]["seconds"].update(median=0),
            "rows[0].seconds.median was 0, but should be more than 0",
        ),
        (
            lambda made: made["rows"][0]["ratios"].update(other={"median": 1}),
            "rows[0].ratios.other lacks low, high",
        ),
        (lambda made: made["rows"][0]["roofline"].pop("bound"), "rows[0].roofline lacks bound"),
        (lambda made: made["missing"][0].update(reason=""), "missing[0].reason was '', but should be a text that is "),
    ],
)
def test_what_does_not_keep_the_schema_is_told_with_its_place(tmp_path: Path, spoil: Spoil, says: str) -> None:
    file = _spoiled(tmp_path, spoil)
    with pytest.raises(UsageError, match=f"^{re.escape(f'{file} is no bench record of this suite: {says}')}"):
        record.read(file)


def test_three_problems_are_told_and_the_rest_counted(tmp_path: Path) -> None:
    file = _spoiled(tmp_path, lambda made: [made.pop("rows"), *(entry.clear() for entry in made["ceilings"])])
    with pytest.raises(UsageError, match=r"the document lacks rows; ceilings\[0\] lacks device, dtype, threads"):
        record.read(file)
    file = _spoiled(tmp_path, lambda made: made.update(rows=[1, 2, 3, 4, 5]))
    with pytest.raises(UsageError, match=r"rows\[0\] was 1.*rows\[2\] was 3, but should be an object; and 2 more$"):
        record.read(file)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (None, "there is no record {file}; `python -m harness bench -o {file}` writes one"),
        ("{", "{file} is not JSON: "),
        ("[" * 100_000, "{file} cannot be read: its values are nested too deeply"),
        ('{"kind": "bench", "schema": NaN}', "{file} is not JSON: it has NaN, which is not valid JSON"),
        ('{"kind": "bench", "kind": "bench"}', "{file} is not JSON: it has 'kind' twice in one object"),
        ("[]", "{file} was 'list', but should be a record of kind 'bench', version 1"),
        ('{"kind": "gate", "schema": 1}', "{file} was ('gate', 1), but should be a record of kind 'bench', version 1"),
        ('{"kind": "bench", "schema": 2}', "{file} was ('bench', 2), but should be a record of kind 'bench', version"),
    ],
)
def test_what_is_no_record_is_told_in_a_sentence(tmp_path: Path, text: str | None, says: str) -> None:
    file = tmp_path / "bench.json"
    if text is not None:
        file.write_text(text)
    with pytest.raises(UsageError, match=f"^{re.escape(says.format(file=file))}"):
        record.read(file)


def test_a_folder_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=f"^{re.escape(str(tmp_path))} cannot be read: Is a directory$"):
        record.read(tmp_path)


def test_a_record_of_another_kind_is_held_against_its_kind_alone(tmp_path: Path) -> None:
    file = tmp_path / "gate.json"
    file.write_text('{"kind": "gate", "schema": 1}')
    assert record.read(file, "gate") == {"kind": "gate", "schema": 1}
    with pytest.raises(UsageError, match="should be a record of kind 'other', version 1"):
        record.read(file, "other")


@pytest.mark.parametrize(
    ("arguments", "option"),
    [
        (["html", str(CPU), "--bench"], "--bench"),
        (["bench", "--show"], "--show"),
        (["gate", "--show"], "--show"),
        (["gate", "--baseline"], "--baseline"),
    ],
)
def test_the_option_is_named_by_which_the_file_was_given(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    option: str,
) -> None:
    file = tmp_path / "other.json"
    file.write_text("[]")
    monkeypatch.setattr(sys, "argv", ["harness", *arguments, str(file)])
    assert main() == 2
    assert capsys.readouterr().err.startswith(f"error: {option}: {file} was 'list', but should be a record of kind")


def test_the_page_on_the_format_names_every_field() -> None:
    page = (ROOT / "docs" / "report-format.md").read_text().partition("## A bench record")[2]
    found = schema(record.FILE)
    parts = [found, *(found["properties"][name]["items"] for name in ("ceilings", "rows", "missing"))]
    for part in [*parts, found["properties"]["settings"], found["$defs"]["interval"]]:
        for name in part["properties"]:
            assert f"`{name}`" in page, f"docs/report-format.md does not describe {name}"


def test_phases_are_those_of_the_suite() -> None:
    assert schema(record.FILE)["properties"]["rows"]["items"]["properties"]["phase"]["enum"] == list(PHASES)
