"""The times of a verdict: the table that is printed, and the record that `-o` writes."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.bench import record
from tools import verdict_time
from tools.verdict_time import Timed

_FOUND = [
    Timed("values", served=False, seconds=1.5, load=0.1, code=0),
    Timed("values", served=True, seconds=0.25, load=2.0, code=0),
    Timed("`html`", served=False, seconds=0.1, load=0.3, code=3),
]


@pytest.fixture
def timed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The tool on a machine without a server, with these times."""
    monkeypatch.setattr(verdict_time, "state_root", lambda: tmp_path)
    monkeypatch.setattr(verdict_time, "_timed", lambda *_: _FOUND)


@pytest.mark.usefixtures("timed")
def test_a_row_has_both_times_and_a_failed_command_its_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    assert verdict_time.main([]) == 1
    assert capsys.readouterr().out.splitlines()[2:] == [
        "| values | 1.50 | 0.25 | 2.0 |",
        "| `html` | failed (3) |  | 0.3 |",
    ]


@pytest.mark.usefixtures("timed")
def test_the_record_names_the_machine_and_the_commit(tmp_path: Path) -> None:
    file = tmp_path / "new" / "times.json"
    verdict_time.main(["-o", str(file)])
    found = record.read(file, verdict_time.KIND)
    assert [row["seconds"] for row in found["rows"]] == [1.5, 0.25, 0.1]
    assert {"commit", "cpu", "torch"} <= set(found["environment"])


@pytest.mark.usefixtures("timed")
def test_a_server_that_runs_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "judge-1.socket").touch()
    with pytest.raises(SystemExit) as ended:
        verdict_time.main([])
    assert ended.value.code == 2
    assert "end it by `python -m harness serve --stop`" in capsys.readouterr().err


def test_the_page_has_the_times_of_the_record() -> None:
    found = record.read(Path("results/cpu/verdict-time.json"), verdict_time.KIND)
    times = {(row["name"], row["served"]): f"{row['seconds']:.2f}" for row in found["rows"]}
    page = Path("docs/performance.md").read_text(encoding="utf-8")
    for name in verdict_time.RUNS:
        said = name.replace("all dtypes", "all four dtypes")
        assert f"| {said} | {times[name, False]} | {times[name, True]} | " in page
    assert f"at {found['environment']['commit'][:7]} (`results/cpu/verdict-time.json`)" in page


def test_the_page_has_the_times_on_a_gpu() -> None:
    found = record.read(Path("results/nvidia-h200/verdict-time.json"), verdict_time.KIND)
    times = {(row["name"], row["served"]): f"{row['seconds']:.1f}" for row in found["rows"]}
    gradients, levels = "values and gradients in all dtypes", "all levels in all dtypes"
    said = " ".join(Path("docs/performance.md").read_text(encoding="utf-8").split())
    assert f"values and gradients {times[gradients, False]} and {times[gradients, True]} s" in said
    assert f"all levels {times[levels, False]} and {times[levels, True]} s" in said
