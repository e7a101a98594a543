"""A run in progress: a bar on an interactive terminal, otherwise pytest's own lines, and the same end in both."""

from __future__ import annotations

import fcntl
import io
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from harness.pytest_plugin import progress
from harness.report.cell import FAIL, NO_EVIDENCE, NOT_RUN
from tests.meta.conftest import ROOT, environment
from tests.meta.reports import cell
from tests.meta.tiers import WHOLE, first_alone

CELLS = Path(__file__).with_name("wrong_cells.py")
WIDTH = 150


def watched(*arguments: object, **changes: str) -> str:
    """The terminal output of `pytest ARGUMENTS`, with escapes."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, WIDTH, 0, 0))
    settings = environment(TERM="xterm-256color", **changes)
    for name in {"CI", "COLUMNS", "NO_COLOR"} - changes.keys():
        settings.pop(name, None)
    command = [sys.executable, "-m", "pytest", "-q", "--no-header", "-p", "no:cacheprovider", *map(str, arguments)]
    seen = b""
    with subprocess.Popen(command, cwd=ROOT, env=settings, stdin=theirs, stdout=theirs, stderr=theirs) as run:
        os.close(theirs)
        while True:
            try:
                part = os.read(ours, 65536)
            except OSError:  # the other end is closed
                break
            if not part:
                break
            seen += part
        run.wait(timeout=300)
    os.close(ours)
    return seen.decode()


def plain(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)


def judging(report: Path) -> list[object]:
    chosen = [f"--candidate=lltm={CELLS}:{name}" for name in ("right", "swapped_gates")]
    return [
        "tests/conformance/test_properties.py::test_forward_parity",
        "--dtype=float32",
        "--isolate=off",
        f"--report={report}",
        *chosen,
    ]


@pytest.mark.parametrize("workers", first_alone([[], ["-n", "2"]]), ids=["alone", "workers"])
def test_at_a_terminal_there_is_a_bar_and_the_end_is_as_ever(tmp_path: Path, workers: list[str]) -> None:
    raw = watched(*judging(tmp_path / "report.json"), *workers)
    text = plain(raw)
    during, _, after = text.partition("FAILURES")
    assert "━" in during
    assert "\x1b[?25l" in raw
    assert "\x1b[?25h" in raw, "the cursor comes back"
    for words in ("0/2", "1/2", "left", "test_forward_parity[lltm-right-cpu-float32]", "✗ 1", "✓ 1"):
        assert words in during
    assert "✗ lltm/swapped_gates/cpu/float32/forward-parity: new_h was" in during, "a failure is shown when it is found"
    assert "[100%]" not in during
    for words in (
        "This script reproduces it:",
        "from harness.replay import replay",
        "Wrong: values are wrong in float32",
        "✓ values      1 of 1 hold",
        "✗ values      0 of 1 hold",
        "1 failed, 1 passed",
    ):
        assert words in after
    assert "━━━ 2/2" not in after


@pytest.mark.long(WHOLE)
def test_under_ci_a_terminal_has_dots(tmp_path: Path) -> None:
    text = plain(watched(*judging(tmp_path / "report.json"), CI="1"))
    assert re.search(r"^(\.F|F\.) +\[100%\]", text, flags=re.MULTILINE)
    assert "1/2" not in text


@pytest.mark.long(WHOLE)
def test_the_projects_own_tests_have_dots() -> None:
    text = plain(watched("tests/meta/test_gpus.py"))
    assert re.search(r"^\.+ +\[100%\]", text, flags=re.MULTILINE)


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


#: Situation -> whether there is a bar.
SITUATIONS: list[tuple[dict[str, Any], bool]] = [
    ({}, True),
    ({"tty": False}, False),
    ({"ci": "true"}, False),
    ({"term": "dumb"}, False),
    ({"verbosity": 1}, False),
    ({"verbosity": -1}, True),
    ({"capture": "no"}, False),
    ({"worker": True}, False),
    ({"usepdb": True}, False),
    ({"collectonly": True}, False),
]


@pytest.mark.parametrize(("situation", "bar"), SITUATIONS)
def test_where_there_is_a_bar(monkeypatch: pytest.MonkeyPatch, situation: dict[str, Any], bar: bool) -> None:
    monkeypatch.setenv("CI", situation.get("ci", ""))
    monkeypatch.setenv("TERM", situation.get("term", "xterm"))
    config: Any = SimpleNamespace(
        getoption=lambda name, default=None: situation.get(name, default if name != "capture" else "fd"),
        get_verbosity=lambda: situation.get("verbosity", 0),
        **({"workerinput": {}} if situation.get("worker") else {}),
    )
    assert progress.wanted(config, _Terminal() if situation.get("tty", True) else io.StringIO()) is bar


def test_the_bar_counts_verdicts_and_tells_of_bad_ones() -> None:
    stream = io.StringIO()
    bar = progress.Bar(Console(file=stream, width=WIDTH, force_terminal=True, color_system=None), 5)
    bar.judging("test_sizes[lltm-mine-cpu-float32]")
    bar.judged([cell()])
    bar.judged([cell(NOT_RUN)])
    bar.judged([cell(FAIL, reason="x was 1 [lltm(small)]\n  - more")])
    bar.judged([cell(NO_EVIDENCE, reason="zeros pass")])
    bar.judged([cell(FAIL, reason="nobody requires it")], required=False)
    bar.end()
    text = plain(stream.getvalue())
    assert "✗ lltm/mine/cpu/float32/sizes: x was 1 [lltm(small)]\n" in text.replace("\r", "")
    assert "? lltm/mine/cpu/float32/sizes: zeros pass" in text
    assert "- more" not in text
    assert "nobody requires it" not in text
    last = text.rpartition("5/5")[0].rpartition("\n")[2]
    for count in ("✗ 2", "? 1", "✓ 1", "- 1"):
        assert count in last
