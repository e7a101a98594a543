"""The mutants that only a GPU shows: how they are judged in copies, and what their record does to the score."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness.errors import Unavailable
from tests.meta.tiers import WHOLE
from tools.mutation import on_gpu
from tools.mutation.account import Account, Case, Entry, explain, read_ledger
from tools.mutation.judging import KILLED, STILLBORN, SURVIVED
from tools.mutation.on_gpu import Job
from tools.mutation.sources import SOURCES


def test_every_mutant_that_the_ledger_keeps_for_a_gpu_is_judged_after_its_backend() -> None:
    found = on_gpu.jobs(read_ledger())
    mutants = [job for job in found if job.mutant is not None]
    expected = {entry.key for entry in read_ledger() if entry.seen_by}
    assert {job.mutant.key for job in mutants if job.mutant} == expected
    hosts = {entry.key: entry.host for entry in read_ledger() if entry.host}
    assert hosts
    assert {job.mutant.key: job.host for job in mutants if job.mutant and job.mutant.key in hosts} == hosts
    right = found[: -len(mutants)]
    assert {(job.host, job.property) for job in right} == {(job.host, job.property) for job in mutants}


@pytest.fixture
def on_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Judge copies on the CPU: what happens to them is the same."""
    monkeypatch.setattr(on_gpu, "CUDA", "cpu")
    monkeypatch.setattr(on_gpu, "DTYPE", "float32")


@pytest.mark.long(WHOLE)
@pytest.mark.usefixtures("on_the_cpu")
def test_a_copy_has_the_mutant_and_is_removed(tmp_path: Path) -> None:
    source = SOURCES[0]
    mutant = next(each for each in source.drawn(everything=True)[0] if each.edit.operator == "drop-term")
    host = source.hosts[0]
    right, wrong = (
        on_gpu._judged(tmp_path / name, Job(host, "forward-parity", each))
        for name, each in (("right", None), ("wrong", mutant))
    )
    assert (right["status"], right["id"]) == (SURVIVED, "")
    assert (wrong["status"], wrong["id"]) == (KILLED, mutant.id)
    assert "should be" in wrong["message"]
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("verdict", "reason", "status"),
    [
        ("pass", "", SURVIVED),
        ("fail", "new_h was 1, but should be 2", KILLED),
        ("fail", "cuda-accessor/lltm does not build (exit 1):", STILLBORN),
    ],
)
def test_the_outcome_is_that_of_the_cell(tmp_path: Path, verdict: str, reason: str, status: str) -> None:
    assert on_gpu.outcome(_report(tmp_path, [_cell(verdict, reason)])) == (status, reason)


@pytest.mark.parametrize("cells", [None, [], [("not-run", "needs 96 GB")], [("pass", ""), ("pass", "")]])
def test_what_was_not_judged_is_no_outcome(tmp_path: Path, cells: list[tuple[str, str]] | None) -> None:
    with pytest.raises(Unavailable, match=r"should judge 1|needs 96 GB"):
        on_gpu.outcome(_report(tmp_path, None if cells is None else [_cell(*cell) for cell in cells]))


def _cell(verdict: str, reason: str) -> dict[str, Any]:
    return {"property": "many-elements", "backend": "cuda-accessor", "verdict": verdict, "reason": reason}


def _report(folder: Path, cells: list[dict[str, Any]] | None) -> Path:
    path = folder / "report.json"
    if cells is not None:
        path.write_text(json.dumps({"cells": cells}))
    return path


def test_a_backend_that_fails_unchanged_ends_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(on_gpu, "_judged", lambda _, job: _row(KILLED, "" if job.mutant is None else job.mutant.id))
    with pytest.raises(Unavailable, match="the unmutated cuda-accessor was killed by many-elements"):
        on_gpu.run(read_ledger(), tmp_path)


def _row(status: str, id: str = "m") -> dict[str, Any]:
    return {"id": id, "host": "cuda-accessor", "property": "many-elements", "status": status, "message": "wrong"}


def test_what_a_gpu_has_noticed_counts_as_noticed(tmp_path: Path) -> None:
    source = SOURCES[0]
    first, second, *_ = source.drawn(everything=False)[0]
    why = "needs more elements than that"
    ledger = [Entry(*mutant.key, why, "many-elements") for mutant in (first, second)]
    rows = [
        {**_row(status), "file": m.file, "before": m.before, "after": m.after}
        for m, status in ((first, KILLED), (second, SURVIVED))
    ]
    folder = tmp_path / "results/nvidia-h200"
    folder.mkdir(parents=True)
    (folder / "mutation-on-gpu.json").write_text(json.dumps({"environment": {"gpu": "NVIDIA H200"}, "mutants": rows}))
    seen = on_gpu.noticed(tmp_path)
    assert seen == {first.key: "NVIDIA H200: wrong"}
    cases = [Case(source, m, list(source.hosts)) for m in (first, second)]
    for case in cases:
        case.on_gpu = seen.get(case.key, "")
    explain(cases, ledger)
    account = Account(cases, {source.file: 2})
    assert [case.explained for case in cases] == ["on-gpu", "gpu-only"]
    assert account.score() == 0.5
