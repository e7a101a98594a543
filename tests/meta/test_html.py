"""The page as a file: what stands in it without a browser, and that its data are those of the report."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from harness import strength, tables
from harness.__main__ import main
from harness.judge import FAIL, NOT_RUN, PASS
from harness.rendering import charts, facts, html, pack
from harness.report import Report
from tests.meta.reports import ATTACK, H200, PLANTED, ULPS, attacking, cell, in_forms, of, one_of_each

ROOT = Path(__file__).parents[2]
#: Pages that are committed -> the records that they were drawn from.
EXAMPLES = {
    "docs/reports/cpu.html": "results/cpu/operators.json",
    "docs/reports/h200.html": "results/nvidia-h200/operators.json",
    "docs/reports/wrong.html": "results/cpu/wrong-function.json",
}


class _Elements(HTMLParser):
    """Every element with its attributes; and the text of scripts, for which HTML has rules of its own."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.words: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag: str) -> None:
        self.elements.append((f"/{tag}", {}))

    def handle_data(self, data: str) -> None:
        if self.elements and self.elements[-1][0] == "script":
            self.scripts[-1] += data
        else:
            self.words.append(data)


def unpack(payload: dict[str, Any], value: Any) -> Any:
    """What page/data.js does."""
    if isinstance(value, str):
        return payload["texts"][int(value, 36)]
    if not isinstance(value, list):
        return value
    shape, *parts = value
    inner = [unpack(payload, part) for part in parts]
    return inner if shape < 0 else dict(zip(payload["shapes"][shape], inner, strict=True))


def data_of(page: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(_Elements(page).scripts[0])
    return found


@pytest.mark.parametrize("make", [one_of_each, attacking, lambda: Report.read(H200)], ids=["each", "attack", "h200"])
def test_the_page_has_every_cell_as_it_is(make: Any) -> None:
    report = make()
    _hold(html.page(report), report)


def test_committed_examples_show_the_committed_records() -> None:
    """Their cells; what else stands in them changes with the suite. `python -m harness html RECORD -o EXAMPLE`."""
    for example, record in EXAMPLES.items():
        text = (ROOT / example).read_text()
        _hold(text, Report.read(ROOT / record))
        assert len(text.encode()) < 1_500_000, "250 bytes a cell, and what the speed of a bench takes"


def _hold(text: str, report: Report) -> None:
    """Every cell of the report stands in the page, and no other."""
    data = data_of(text)
    columns = data["columns"]
    found = {}
    for number in range(len(columns["verdict"])):
        key = tuple(data["axes"][name][columns[name][number]] for name in facts.AXES)
        verdict, reason = data["verdicts"][columns["verdict"][number]], data["texts"][columns["reason"][number]]
        found[key] = (verdict, reason, unpack(data, columns["figures"][number]) or {})
    assert found.keys() == {cell.key for cell in report.cells}
    for cell_ in report.cells:
        verdict, reason, figures = found[cell_.key]
        assert (verdict, reason) == (cell_.verdict, cell_.reason)
        assert _close(figures, cell_.figures)


def _close(one: Any, other: Any) -> bool:
    """Equal but for the seventh digit of numbers."""
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_close(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(_close, one, other))
    return one == (pytest.approx(other, rel=1e-5) if isinstance(other, float) else other)


def test_failures_come_with_those_that_can_be_run_alone_first() -> None:
    report = Report.read(PLANTED)
    data = data_of(html.page(report))
    order = [data["axes"]["property"][data["columns"]["property"][number]] for number in data["failures"]]
    assert order[:2] == ["forward-parity", "vjp-parity"]
    assert len(order) == report.count(FAIL)
    alone = [bool(unpack(data, data["columns"]["figures"][number])) for number in data["failures"]]
    assert alone == sorted(alone, reverse=True)


def test_nothing_comes_from_elsewhere_and_one_script_may_run() -> None:
    text = html.page(Report.read(H200))
    found = _Elements(text)
    for tag, attributes in found.elements:
        for name in ("src", "href", "action", "data"):
            value = attributes.get(name) or ""
            assert value.startswith(("#", "data:")) or not value, f"{tag} {name}={value}"
    assert "url(http" not in text
    assert "@import" not in text
    _data, script = found.scripts
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    (policy,) = [a["content"] for _, a in found.elements if a.get("http-equiv") == "Content-Security-Policy"]
    assert policy == f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; img-src data:"


def test_words_of_a_report_make_no_element_and_no_attribute() -> None:
    ours, theirs = (_Elements(html.page(report)) for report in (one_of_each(), attacking()))
    assert len(theirs.scripts) == len(ours.scripts) == 2
    kinds = {tag for tag, _ in ours.elements}
    assert {tag for tag, _ in theirs.elements} <= kinds
    for _, attributes in theirs.elements:
        assert not [name for name in attributes if name.startswith("on")]
    assert ATTACK in "".join(theirs.words), "what was tried is shown, as text"


def test_the_environment_tells_unknown_from_unrecorded() -> None:
    words = _Elements(html.page(of(cell(), gpu=None, dirty=None, flags={"mine/lltm": "-O2"}, novelty=7))).words
    told = " ".join(" ".join(words).split())
    for expected in ("GPU not known", "local changes not known", "driver not recorded", "mine/lltm -O2", "novelty 7"):
        assert expected in told


@pytest.mark.parametrize(
    ("report", "verdict", "sentence"),
    [
        (of(cell()), "pass", "all 1 tested cells hold"),
        (of(cell(), cell("declared", property="layouts")), "pass", "all 1 tested cells hold"),
        (of(cell(FAIL), complete=False), "fail", "1 of 1 tested cells failed"),
        (of(cell(), complete=False), "no-evidence", "the run did not come to its end"),
        (of(cell(), cell("no-evidence", dtype="float64")), "no-evidence", "1 cells could not tell right from wrong"),
        (of(cell(NOT_RUN)), "not-run", "nothing was tested"),
        (of(), "not-run", "nothing was tested"),
    ],
)
def test_nothing_but_passes_makes_a_pass(report: Report, verdict: str, sentence: str) -> None:
    assert facts.outcome(report) == (verdict, sentence)
    text = html.page(report)
    assert f'class="plate {verdict}"' in text
    assert sentence in text
    assert ("did not come to its end" in text) is not report.complete


def test_the_page_says_who_was_judged() -> None:
    cells = [cell(backend="mine"), cell(backend="aten-cpp", property="layouts")]
    assert facts.judged(cells) == "aten-cpp, mine"
    assert "Judged: aten-cpp, mine<" in html.page(of(*cells))
    many = [cell(backend=f"b{number:02}") for number in range(14)]
    assert facts.judged(many).endswith("b10, b11 and 2 more")
    assert facts.judged([]) == ""


def test_the_page_carries_what_each_property_is_worth(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(strength, "strengths", lambda: {"sizes": strength.Strength(noticed=3, asked=4, faults=2)})
    assert data_of(html.page(of(cell())))["strength"] == {"sizes": [3, 4, 2]}


def test_what_was_never_asked_is_found() -> None:
    cells = [
        cell(backend="aten-cpp"),
        cell(backend="other", property="layouts"),
        cell(backend="other", dtype="float64"),
    ]
    missing = facts.never_asked(cells)
    assert missing["device"] == ["cuda", "cuda-emulated"]
    assert "aten-cpp" not in missing["backend"]
    assert "python-autograd" in missing["backend"]
    assert "gradcheck" in missing["property"]
    assert "lltm" not in missing.get("operator", [])
    assert facts.holes(cells) == 3 * 2 - 3, "three places of two properties"
    assert facts.holes(cells[:1]) == 0


def test_a_form_that_a_pass_leaves_out_is_a_gap() -> None:
    report = in_forms()
    (gap,) = facts.gaps(report.cells)
    assert (gap.verdict, gap.form, gap.reason, len(gap.cells)) == (NOT_RUN, "op[flat]", "it has no rows", 2)
    text = html.page(report)
    assert "2 forms left out by a pass" in text
    assert facts.drift(report.cells[0]) == [("op[rows] h", 1, 0.25), ("op[rows] h", 10, 0.5)]


@pytest.mark.parametrize(
    ("figures", "reason", "share"),
    [
        ({"worst": {"used": 0.25}}, "", 0.25),
        ({"worst": {"used": -1.0}}, "", None),
        ({"worst": {"used": "inf"}}, "", float("inf")),
        ({"worst": {"used": "nan"}}, "", None),
        ({"h after 1": {"error": 1, "allowed": 4}, "h after 10": {"error": 3, "allowed": 4}}, "", 0.75),
        ({}, "x was 1 at (0,), but should be 2 (rms error 3e-05, allowed 1e-07) [lltm()]", 300.0),
        ({}, "x was 1, but should be 2 (rms of half the difference 2e-5, allowed 1e-06)", 20.0),
        ({}, "x was nan at (0,), but should be 2 (largest error inf, allowed 1e-07)", float("inf")),
        ({}, "x was of shape (1,), but should be (2,)", None),
        ({}, "", None),
    ],
)
def test_the_share_of_an_allowance(figures: dict[str, Any], reason: str, share: float | None) -> None:
    found = facts.used(cell(FAIL if reason else PASS, reason=reason, figures=figures))
    assert found == (share if share is None else pytest.approx(share))


def test_every_failure_of_the_record_that_tells_its_numbers_is_measured() -> None:
    told = [cell_ for cell_ in Report.read(PLANTED).cells if ", allowed " in cell_.reason]
    assert len(told) > 10
    for cell_ in told:
        share = facts.used(cell_)
        assert share is not None
        assert share > 1, cell_.reason


def test_charts_mark_failures_and_count_what_they_leave_out() -> None:
    cells = Report.read(PLANTED).cells
    (chart,) = charts.accuracy(cells).drawn
    assert "var(--fail)" in chart.svg
    assert "times of the allowance" in chart.summary
    many = Report.read(H200).cells
    assert [chart.dtype for chart in charts.accuracy(many).drawn] == ["float32", "float64", "float16", "bfloat16"]
    few = charts.accuracy(many, budget=1)
    assert (len(few.drawn), few.left_out) == (1, 3)


def test_units_in_the_last_place_are_drawn_a_row_a_backend_and_a_picture_a_dtype() -> None:
    forms = {"forms": {name: {"ulps": {"outputs": ULPS, "gradients": [0] * 13}} for name in ("op[a]", "op[b]")}}
    cells = [
        cell(property="forward-parity", figures={"ulps": {"outputs": ULPS}}),
        cell(property="vjp-parity", figures={"ulps": {"outputs": ULPS, "gradients": ULPS[::-1]}}),
        cell(property="forward-parity", backend="other", figures=forms),
        cell(property="vjp-parity", dtype="float16", figures={"ulps": {"outputs": ULPS, "gradients": [0] * 13}}),
    ]
    assert facts.ulps(cells[2]) == {"outputs": [2 * count for count in ULPS], "gradients": [0] * 13}
    (chart,) = charts.ulps(cells).drawn
    assert chart.dtype == "float32", "of float16 nothing that is drawn was counted"
    assert [f">{name}<" in chart.svg for name in ("mine", "other")] == [True, True]
    share = 100 * (ULPS[0] + ULPS[-1]) / (2 * sum(ULPS))
    assert f"{share:.1f}"[:-1] in chart.summary
    assert " of mine, and no less" in chart.summary
    text = html.page(of(*cells))
    assert "<h3>Units in the last place</h3>" in text
    assert "<h3>Units in the last place</h3>" not in html.page(one_of_each())


def test_the_page_says_how_many_pictures_it_leaves_out(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = charts.accuracy
    monkeypatch.setattr(charts, "accuracy", lambda cells: whole(cells, budget=1))
    assert "3 more are left out" in html.page(Report.read(H200))


def test_pictures_are_the_same_for_the_same_report() -> None:
    report = Report.read(H200)
    assert html.page(report) == html.page(report)


def test_names_in_pictures_are_text() -> None:
    cells = [cell(backend=f"{ATTACK}{n}", figures={"worst": {"used": 0.5}}) for n in range(3)]
    cells.append(cell(backend="@1@$x^$#000001", figures={"worst": {"used": 0.5}}))
    (chart,) = charts.accuracy(cells).drawn
    assert "<script" not in chart.svg
    assert "@1@$x^$#000001" in chart.svg
    assert chart.svg.count("&lt;/script&gt;") == 3
    assert not re.search(r"#0000(0|1)\d(?!1?\b)", chart.svg.replace("@1@$x^$#000001", "")), (
        "a colour without a variable"
    )


@pytest.mark.parametrize("number", [0, 1, 35, 36, 1295, 1296, 10**9])
def test_base_36(number: int) -> None:
    assert int(pack.base36(number), 36) == number


def test_views_are_those_of_the_table() -> None:
    views = data_of(html.page(one_of_each()))["views"]
    assert views == {name: sorted(wanted) for name, wanted in tables.VIEWS.items() if wanted}


def test_the_command_writes_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "deep" / "report.html"
    monkeypatch.setattr(sys, "argv", ["harness", "html", str(PLANTED), "-o", str(target)])
    assert main() == 0, "to draw failures is no failure"
    assert target.read_text() == html.page(Report.merged([Report.read(PLANTED)]))
    assert str(target) in capsys.readouterr().err
