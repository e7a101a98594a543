"""The record of a fleet that was harmed: what it counts, what it judges, and that the page has its words."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest

from harness.fleet.item import Item
from tests.meta.conftest import ROOT
from tools.fleet_record import candidates, lives
from tools.fleet_record.__main__ import RECORD
from tools.fleet_record.document import text

ITEMS = [Item(name, "f", source=f"# {name}", operator="op") for name in "abcd"]
#: `a` was lost with its worker, and `b` was running when the head was killed.
NOTES = (
    "started a w1",
    "started b w2",
    "killed-worker 7",
    "lost a w1",
    "started a w3",
    "finished a w3",
    "killed-head 1",
    "started b w1",
    "finished b w1",
    "started c w1",
    "finished c w1",
    "started d w1",
    "finished d w1",
)


def _record(folder: Path, notes: tuple[str, ...], done: str = "abcd") -> dict[str, object]:
    log, results = folder / "log.txt", folder / "results.sqlite"
    log.write_text("".join("\t".join(note.split()) + "\n" for note in notes))
    with sqlite3.connect(results) as data:
        data.execute("create table candidates (id, state, verdict, cpu_seconds, attempts)")
        data.executemany("insert into candidates values (?, 'done', 'fail', 0.5, 1)", list(done))
    return lives.record(ITEMS, results, log, 60.0)


def test_what_is_begun_again_after_an_end_is_no_waste(tmp_path: Path) -> None:
    found = _record(tmp_path, NOTES)
    assert (found["lost"], found["judged_twice"], found["started_again_without_need"]) == (0, 0, 0)
    assert found["started_again"] == {"after_a_worker_or_node": 1, "after_the_head": 1}
    assert found["harm"] == ["killed-worker", "killed-head"]
    assert found["a_minute"] == 4


@pytest.mark.parametrize(
    ("more", "done", "what"),
    [
        ((), "abc", "lost"),
        (("finished c w2",), "abcd", "judged_twice"),
        (("started d w2",), "abcd", "started_again_without_need"),
    ],
)
def test_what_goes_wrong_is_counted(tmp_path: Path, more: tuple[str, ...], done: str, what: str) -> None:
    found = _record(tmp_path, (*NOTES, *more), done)
    counts = {name: found[name] for name in ("lost", "judged_twice", "started_again_without_need")}
    assert counts == dict.fromkeys(counts, 0) | {what: 1}


def test_candidates_are_distinct_and_the_same_each_time() -> None:
    found = candidates.made(60)
    assert found == candidates.made(60)
    assert len({item.source for item in found}) == len({item.id for item in found}) == 60
    assert {item.operator for item in found} == set(candidates.sources())
    right = {item.function for item in found if item.source == candidates.sources()[item.function]}
    assert right == set(candidates.sources()), "each function itself is among them"


def test_the_page_has_the_record() -> None:
    """`python -m tools.fleet_record` writes it. Without a record, the page claims none."""
    page = (ROOT / "docs" / "fleet.md").read_text(encoding="utf-8")
    if not RECORD.exists():
        assert "<!-- results/cpu/fleet.json -->" not in page
        return
    words = text(json.loads(RECORD.read_text(encoding="utf-8")))
    assert f"<!-- results/cpu/fleet.json -->\n\n{words}\n<!-- end -->" in page, f"docs/fleet.md should have:\n\n{words}"
