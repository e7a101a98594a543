"""Two reports compared: every change is found with its kind; worse or vanished cells fail."""

from __future__ import annotations

import io
import sys
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest
from rich.console import Console

from harness.__main__ import main
from harness.rendering import diff
from harness.report.cell import FAIL, NOT_RUN, PASS, VERDICTS
from harness.report.difference import BEST_FIRST, difference
from harness.report.levels import Standing
from harness.report.report import Report
from tests.meta.reports import ATTACK, attacking, cell, of, of_levels, one_of_each


def test_the_order_has_every_verdict() -> None:
    assert sorted(BEST_FIRST) == sorted(VERDICTS)


@pytest.mark.parametrize(("was", "now"), list(product(VERDICTS, VERDICTS)))
def test_a_change_of_verdict_is_better_or_worse(was: str, now: str) -> None:
    found = difference(of(cell(was)), of(cell(now)))
    step = BEST_FIRST.index(now) - BEST_FIRST.index(was)
    assert (len(found.worse), len(found.better), found.same) == (step > 0, step < 0, step == 0)
    assert found.regressed is (step > 0)
    assert found.vanished == found.appeared == ()


def test_what_appears_and_what_vanishes() -> None:
    one, other = cell(), cell(FAIL, property="layouts")
    appeared = difference(of(one), of(one, other))
    assert (appeared.appeared, appeared.vanished, appeared.regressed) == ((other,), (), False)
    vanished = difference(of(one, other), of(one))
    assert (vanished.appeared, vanished.vanished, vanished.regressed) == ((), (other,), True)


def test_the_same_report_is_as_before() -> None:
    found = difference(one_of_each(), one_of_each())
    assert not found.regressed
    assert diff.headline(found) == "0 worse, 0 vanished, 0 better, 0 appeared, 6 as before"
    assert found.environment == found.otherwise == found.fits == found.partial == found.levels == ()


def test_a_failure_of_another_kind_is_told() -> None:
    found = difference(of(cell(FAIL, reason="one")), of(cell(FAIL, reason="two")))
    assert [change.after.reason for change in found.otherwise] == ["two"]
    assert not found.regressed


@pytest.mark.parametrize(("was", "now", "listed"), [(0.3, 0.9, True), (0.9, 0.3, True), (0.3, 0.4, False)])
def test_a_fit_that_is_notably_tighter_or_looser_is_told(was: float, now: float, listed: bool) -> None:
    before, after = (of(cell(figures={"worst": {"used": used}})) for used in (was, now))
    assert bool(difference(before, after).fits) is listed


def test_a_level_that_changed_is_told_first() -> None:
    before = of(*of_levels(PASS, PASS, NOT_RUN).cells, cell(backend="gone"), cell(backend="b"))
    after = of(*of_levels(PASS, FAIL, PASS).cells, cell(FAIL, property="layouts", backend="b"), cell(backend="b"))
    found = difference(before, after)
    assert [(one.backend, one.level, _counted(one.before), _counted(one.after)) for one in found.levels] == [
        ("b", "values", ("pass", 1, 1), ("fail", 1, 2)),
        ("gone", "values", ("pass", 1, 1), None),
        ("mine", "gradients", ("pass", 1, 1), ("fail", 0, 1)),
        ("mine", "safe", ("not-run", 0, 0), ("pass", 1, 1)),
    ]
    stream = io.StringIO()
    diff.print_difference(found, Console(file=stream, width=100))
    for text in (stream.getvalue(), diff.markdown(found)):
        assert text.index("Levels") < text.index("Worse")
        assert "✗ fail, 0 of 1" in text
        assert "- not-run" in text
    assert "| lltm/mine | gradients | ✓ pass, 1 of 1 | ✗ fail, 0 of 1 |" in diff.markdown(found)
    assert difference(before, before).levels == ()


def _counted(found: Standing | None) -> tuple[str, int, int] | None:
    return found and (found.verdict, found.passed, found.tested)


def test_no_text_of_a_report_commands_the_terminal() -> None:
    escape = "\x1b[2J\x07"
    said = {"backend": escape, "property": escape}
    before = of(cell(**said), cell(property="layouts", backend=escape), cpu=escape)
    found = difference(before, of(cell(FAIL, reason=escape, **said), cell(FAIL, operator=escape, reason=escape)))
    stream = io.StringIO()
    diff.print_difference(found, Console(file=stream, width=100, force_terminal=True, color_system=None))
    assert not {"\x1b", "\x07"} & set(stream.getvalue() + diff.markdown(found))


def test_the_environment_is_compared_but_for_the_time() -> None:
    before = of(cell(), gpu="A", time="1", tf32={"matmul": False}, gone=1)
    after = of(cell(), gpu="B", time="2", tf32={"matmul": True}, driver="580")
    assert difference(before, after).environment == (
        ("gpu", "A", "B"),
        ("tf32", {"matmul": False}, {"matmul": True}),
        ("gone", 1, "not recorded"),
        ("driver", "not recorded", "580"),
    )


def _changes() -> tuple[Report, Report]:
    used = [cell(property="sizes", figures={"worst": {"used": share}}) for share in (0.1, 0.8)]
    before = of(cell(property="a"), cell(FAIL, property="b"), cell(property="c"), used[0], gpu="A")
    after = of(
        cell(FAIL, property="a", reason="new [x] wrong"), cell(property="b"), cell(property="d"), used[1], gpu="B"
    )
    return before, replace(after, complete=False)


#: The lines of each rendering of `_changes`.
_SAID = ["Worse", "Better", "Vanished", "Appeared", "Allowance used", "Environment", "80%", "is partial"]


def test_the_terminal_shows_each_change() -> None:
    stream = io.StringIO()
    diff.print_difference(difference(*_changes()), Console(file=stream, width=140))
    text = stream.getvalue()
    for words in [
        *_SAID,
        "new [x] wrong",
        "lltm/mine/cpu/float32/a",
        "✗ fail",
        "1 worse, 1 vanished, 1 better, 1 appeared",
    ]:
        assert words in text


def test_the_markdown_shows_each_change() -> None:
    text = diff.markdown(difference(*_changes()))
    assert text.startswith("## ✗ Conformance, compared: 1 worse, 1 vanished, 1 better, 1 appeared, 1 as before")
    for words in _SAID:
        assert words in text
    assert "| lltm/mine/cpu/float32/a | ✓ pass | ✗ fail | new &#91;x&#93; wrong |" in text


def test_words_of_a_candidate_are_no_markup() -> None:
    text = diff.markdown(difference(of(cell()), attacking()))
    assert ATTACK not in text
    assert "<script" not in text
    assert len({line.count("|") for line in text.splitlines() if line.startswith("| lltm")}) == 1


@pytest.mark.parametrize(
    ("after", "code"),
    [(of(cell()), 0), (of(cell(), cell(FAIL, property="new")), 0), (of(cell(FAIL)), 1), (of(), 1)],
    ids=["same", "appeared", "worse", "vanished"],
)
@pytest.mark.parametrize("option", [[], ["--markdown"]], ids=["table", "markdown"])
def test_the_exit_code_is_for_ci(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    after: Report,
    code: int,
    option: list[str],
) -> None:
    one, other = tmp_path / "a.json", tmp_path / "b.json"
    of(cell(PASS)).write(one)
    after.write(other)
    monkeypatch.setattr(sys, "argv", ["harness", "diff", str(one), str(other), *option])
    assert main() == code
    assert "as before" in capsys.readouterr().out
