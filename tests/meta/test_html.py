"""The page as a file: its content without a browser, and that its data are those of the report."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
import sys
import time
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from harness.__main__ import main
from harness.rendering import charts, facts, html, tables
from harness.report import figures
from harness.report.cell import AXES, FAIL, NOT_RUN, PASS
from harness.report.levels import LEVELS, SAFE, VALUES
from harness.report.report import NO_SUITE, Report, jsonable
from tests.meta.reports import (
    ATTACK,
    PLANTED,
    SUITE,
    ULPS,
    attacking,
    cell,
    h200,
    in_forms,
    of,
    of_levels,
    one_of_each,
    row,
)

ROOT = Path(__file__).parents[2]
#: Committed pages -> the records from which they were drawn.
EXAMPLES = {
    "docs/reports/cpu.html": "results/cpu/operators.json",
    "docs/reports/h200.html": "results/nvidia-h200/operators.json",
    "docs/reports/wrong.html": "results/cpu/wrong-function.json",
}


class _Elements(HTMLParser):
    """Every element with its attributes; and the text of scripts, which HTML parses by special rules."""

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


def data_of(page: str) -> dict[str, Any]:
    """The data that page/data.js decompresses."""
    found: dict[str, Any] = json.loads(gzip.decompress(base64.b64decode(_Elements(page).scripts[0])))
    return found


@pytest.mark.parametrize("make", [one_of_each, attacking, h200], ids=["each", "attack", "h200"])
def test_the_page_has_every_cell_as_it_is(make: Any) -> None:
    report = make()
    _hold(html.page(report), report)


def test_committed_examples_show_the_committed_records() -> None:
    """Only their cells; the rest changes with the suite. `python -m harness html RECORD -o EXAMPLE`."""
    for example, record in EXAMPLES.items():
        text = (ROOT / example).read_text()
        report = Report.read(ROOT / record)
        _hold(text, report)
        assert len(text.encode()) < 100_000 + 210 * len(report.cells), "the page itself, and 210 bytes for each cell"


def _hold(text: str, report: Report) -> None:
    """The page has exactly the cells of the report."""
    found = {tuple(row[name] for name in AXES): row for row in data_of(text)["cells"]}
    assert found.keys() == {cell.key for cell in report.cells}
    for cell_ in report.cells:
        row = found[cell_.key]
        assert (row["verdict"], row["reason"]) == (cell_.verdict, cell_.reason)
        assert row["figures"] == jsonable(cell_.figures)


def test_failures_are_grouped_by_cause_the_plain_one_first() -> None:
    report = Report.read(PLANTED)
    data = data_of(html.page(report))
    causes = [[data["cells"][number] for number in numbers] for numbers in data["causes"]]
    assert [failure["property"] for failure in causes[0]][:2] == ["forward-parity", "drawn-calls"]
    assert all("reproducer" in cause[0]["figures"] for cause in causes[:1])
    assert len(causes) == 5
    assert sum(map(len, causes)) == report.count(FAIL)


def test_what_is_not_required_is_among_no_failures() -> None:
    report = of_levels(PASS, PASS, FAIL, FAIL, "no-evidence", required=SAFE)
    text = html.page(report)
    data = data_of(text)
    assert [[data["cells"][number]["property"] for number in numbers] for numbers in data["causes"]] == [["memory"]]
    assert (data["required"], data["levels"]["opcheck"]) == (["values", "gradients", "safe"], "pytorch")
    assert "Show 2 cells of 2 properties above the level safe" in text
    right = html.page(of_levels(PASS, PASS, PASS, FAIL, required=SAFE))
    assert '<section id="failures" hidden>' in right
    assert 'class="plate pass"' in right
    assert '<section id="support" hidden>' in html.page(of_levels(PASS, PASS, PASS, PASS, required=SAFE))


def test_a_huge_text_makes_no_huge_page() -> None:
    huge = "".join(chr(65 + number % 26) + str(number) for number in range(400_000))
    report = of(
        row("forward-parity", FAIL, reason=huge, figures={"reproducer": huge, "deep": [{"er": huge}]}),
        cell("not-run", property="layouts", reason=huge),
    )
    text = html.page(report)
    assert len(text) < 200_000
    failed = next(found for found in data_of(text)["cells"] if found["verdict"] == FAIL)
    assert failed["reason"].endswith(f"... ({len(huge) - 20_000:,} more characters)")
    assert len(failed["figures"]["deep"][0]["er"]) < 21_000


def test_nothing_comes_from_elsewhere_and_one_script_may_run() -> None:
    text = html.page(h200())
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
    ours, many, theirs = (_Elements(html.page(report)) for report in (one_of_each(), h200(), attacking()))
    assert len(theirs.scripts) == len(ours.scripts) == 2
    kinds = {tag for tag, _ in [*ours.elements, *many.elements]}
    assert {tag for tag, _ in theirs.elements} <= kinds
    for _, attributes in theirs.elements:
        assert not [name for name in attributes if name.startswith("on")]
    assert ATTACK in "".join(theirs.words), "the attack is shown as text"


def test_the_environment_tells_unknown_from_unrecorded() -> None:
    words = _Elements(html.page(of(cell(), gpu=None, dirty=None, flags={"mine/lltm": "-O2"}, novelty=7))).words
    shown = " ".join(" ".join(words).split())
    for expected in ("GPU not known", "local changes not known", "driver not recorded", "mine/lltm -O2", "novelty 7"):
        assert expected in shown


@pytest.mark.parametrize(
    ("report", "verdict", "sentence"),
    [
        (of(cell(), required=VALUES), "pass", "Values are right in float32."),
        (of(cell(), cell("declared", property="layouts")), "declared", "Declared as not supported: layouts (1 cell)."),
        (of(cell(FAIL), complete=False), "fail", "So far: Wrong: values are wrong in float32 (1 of 1 cells: sizes)."),
        (of(cell(), complete=False), "no-evidence", "Partial: the run did not finish."),
        (of(cell(), cell("no-evidence", dtype="float64")), "no-evidence", "Not known whether values are right: sizes"),
        (of(cell(NOT_RUN)), "not-run", "Nothing was judged: why not-run."),
        (of(), "not-run", "Nothing was judged: no cell was selected."),
    ],
)
def test_nothing_but_passes_makes_a_pass(report: Report, verdict: str, sentence: str) -> None:
    text = html.page(report)
    assert f'class="plate {verdict}"' in text
    assert sentence in text
    assert ("did not finish" in text) is not report.complete


@pytest.mark.parametrize(
    ("report", "chips", "marks"),
    [
        (of_levels(PASS, PASS, FAIL, FAIL, required=SAFE), 5, 0),
        (of(*(found for name in "abc" for found in of_levels(PASS, backend=name).cells)), 15, 0),
        (of(*(found for name in "abcdef" for found in of_levels(PASS, backend=name).cells)), 0, 30),
        (of(*(cell(operator=operator, backend=name) for operator in ("lltm", "mlp") for name in "abc")), 0, 30),
        (of(), 0, 0),
    ],
)
def test_every_implementation_has_its_five_levels(report: Report, chips: int, marks: int) -> None:
    found = _Elements(html.page(report)).elements
    assert len([None for tag, attributes in found if tag == "li" and "data-level" in attributes]) == chips
    told = [str(attributes.get("aria-label")) for tag, attributes in found if tag == "svg"]
    assert len([text for text in told if text.startswith(tuple(f"{level}: " for level in LEVELS))]) == marks


def test_a_level_above_the_required_one_is_no_failure() -> None:
    found = _Elements(html.page(of_levels(PASS, NOT_RUN, FAIL, FAIL, required=SAFE))).elements
    chips = {a["data-level"]: a["class"] for tag, a in found if tag == "li" and "data-level" in a}
    assert chips == {
        "values": "pass",
        "gradients": "not-run",
        "safe": "fail",
        "pytorch": "declared beyond",
        "production": "not-run beyond",
    }


def test_the_page_says_who_was_judged() -> None:
    report = of(cell(backend="mine"), cell(backend="aten-cpp", property="layouts"))
    assert facts.judged(report) == "aten-cpp, mine", "backends of the suite come first"
    assert "Judged: aten-cpp, mine<" in html.page(report)
    many = of(*(cell(backend=f"b{number:02}") for number in range(14)))
    assert facts.judged(many).endswith("b10, b11 and 2 more")
    assert facts.judged(of()) == ""


def test_the_page_carries_what_each_property_is_worth_and_claims() -> None:
    data = data_of(html.page(of(cell())))
    assert data["strength"] == {"sizes": [3, 4, 2]}
    assert data["claims"]["layouts"] == "right in every layout"


def test_a_report_without_a_suite_is_drawn_from_its_cells() -> None:
    """A report of an earlier version, or of another suite: the installed suite does not matter."""
    report = replace(of(cell(backend="zeta"), cell(backend="alpha", property="other")), suite=NO_SUITE)
    data = data_of(html.page(report))
    assert data["axes"]["backend"] == ["alpha", "zeta"]
    assert data["views"] == data["claims"] == data["strength"] == {}
    assert facts.never_asked(report) == {}


def test_what_was_never_asked_is_found() -> None:
    report = of(
        cell(backend="aten-cpp"),
        cell(backend="other", property="layouts"),
        cell(backend="other", dtype="float64"),
    )
    assert facts.never_asked(report) == {
        "operator": ["mlp"],
        "backend": ["python-autograd"],
        "device": ["cuda", "cuda-emulated"],
        "dtype": ["float16", "bfloat16"],
        "property": [name for name in SUITE.names("property") if name not in ("sizes", "layouts")],
    }
    assert facts.holes(report.cells) == 3 * 2 - 3, "three slots with two properties"
    assert facts.holes(report.cells[:1]) == 0


def test_a_form_that_a_pass_leaves_out_is_a_gap() -> None:
    report = in_forms()
    (gap,) = facts.gaps(report.cells)
    assert (gap.verdict, gap.form, gap.reason, len(gap.cells)) == (NOT_RUN, "op[flat]", "it has no rows", 2)
    text = html.page(report)
    assert "2 forms not tested by a pass" in text
    assert figures.drift(report.cells[0]) == [("op[rows] h", 1, 0.25), ("op[rows] h", 10, 0.5)]


_DRIFT = [{"state": "h", "steps": n, "error": error, "allowed": 4} for n, error in ((1, 1), (10, 3))]


@pytest.mark.parametrize(
    ("measured", "share"),
    [
        ({"worst": {"used": 0.25}}, 0.25),
        ({"worst": {"used": 300.0}}, 300.0),
        ({"worst": {"used": -1.0}}, None),
        ({"worst": {"used": "inf"}}, float("inf")),
        ({"worst": {"used": "nan"}}, None),
        ({"drift": _DRIFT}, 0.75),
        ({"drift": "much"}, None),
        ({"drift": [3, {"state": "h", "steps": 10**400, "error": 1, "allowed": 1}]}, None),
        ({"worst": {"used": 10**400}}, float("inf")),
        ({}, None),
    ],
)
@pytest.mark.parametrize("verdict", [PASS, FAIL])
def test_the_share_of_an_allowance(measured: dict[str, Any], share: float | None, verdict: str) -> None:
    assert figures.used(cell(verdict, figures=measured)) == share


def test_every_failure_of_the_record_that_tells_its_numbers_is_measured() -> None:
    failed = [cell_ for cell_ in Report.read(PLANTED).cells if ", allowed " in cell_.reason]
    assert len(failed) > 10
    for cell_ in failed:
        share = figures.used(cell_)
        assert share is not None
        assert share > 1, cell_.reason


def test_charts_mark_failures_and_count_what_they_leave_out() -> None:
    (chart,) = charts.accuracy(Report.read(PLANTED)).drawn
    assert "var(--fail)" in chart.svg
    assert "times of the allowance" in chart.summary
    many = h200()
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
    assert figures.ulps(cells[2]) == {"outputs": [2 * count for count in ULPS], "gradients": [0] * 13}
    (chart,) = charts.ulps(of(*cells)).drawn
    assert chart.dtype == "float32", "float16 has no counts to draw"
    assert [f">{name}<" in chart.svg for name in ("mine", "other")] == [True, True]
    share = 100 * (ULPS[0] + ULPS[-1]) / (2 * sum(ULPS))
    assert f"{share:.1f}"[:-1] in chart.summary
    assert " of mine, and no less" in chart.summary
    text = html.page(of(*cells))
    assert "<h3>Units in the last place</h3>" in text
    assert "<h3>Units in the last place</h3>" not in html.page(one_of_each())


def test_the_page_says_how_many_pictures_it_leaves_out(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = charts.accuracy
    monkeypatch.setattr(charts, "accuracy", lambda report: whole(report, budget=1))
    assert "3 more are left out" in html.page(h200())


def test_a_picture_of_hundreds_of_backends_is_left_out() -> None:
    """Nobody could read it, and drawing 4,000 rows took half a minute."""
    figures = {"worst": {"used": 0.5}}
    many = of(*(cell(backend=f"b{number}", figures=figures) for number in range(250)))
    found = charts.accuracy(many)
    assert (found.drawn, found.left_out) == ((), 1)


def test_holes_are_counted_in_no_more_time_than_cells() -> None:
    """The time grew with the square of the number of operators: 8,000 of them took 20 s, and 100,000 would an hour."""
    cells = [cell(operator=f"op{number}") for number in range(20_000)]
    began = time.process_time()  # what other processes do does not count
    assert facts.holes([*cells, cell(operator="op0", property="layouts", backend="other")]) == 2
    assert time.process_time() - began < 5


def test_pictures_are_the_same_for_the_same_report() -> None:
    report = h200()
    assert html.page(report) == html.page(report)


def test_names_in_pictures_are_text() -> None:
    cells = [cell(backend=f"{ATTACK}{n}", figures={"worst": {"used": 0.5}}) for n in range(3)]
    cells.append(cell(backend="@1@$x^$#000001", figures={"worst": {"used": 0.5}}))
    (chart,) = charts.accuracy(of(*cells)).drawn
    assert "<script" not in chart.svg
    assert "@1@$x^$#000001" in chart.svg
    assert chart.svg.count("&lt;/script&gt;") == 3


def test_what_a_picture_cannot_place_is_outside_of_it() -> None:
    """A report may hold any number: no steps on a logarithmic axis, and shares beyond every float."""
    points = [{"state": "h", "steps": steps, "error": error, "allowed": 1e-300} for steps, error in ((0, 0), (9, 1e30))]
    (chart,) = charts.drift(of(cell(figures={"drift": points}))).drawn
    assert not re.search("inf|nan", chart.svg)


def test_views_are_those_of_the_table() -> None:
    report = one_of_each()
    views = data_of(html.page(report))["views"]
    assert views == {"parity": ["forward-parity", "vjp-parity"], "gradcheck": ["gradcheck"]}
    for name, wanted in views.items():
        assert {found.property for found in tables.selected(report, name)} <= set(wanted)


def test_the_command_writes_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "deep" / "report.html"
    monkeypatch.setattr(sys, "argv", ["harness", "html", str(PLANTED), "-o", str(target)])
    assert main() == 0, "drawing failures is no failure"
    assert target.read_text() == html.page(Report.read(PLANTED))
    assert str(target) in capsys.readouterr().err


def test_a_name_cannot_turn_the_text_around() -> None:
    """A file may be called anything: the page names it with its control characters written out."""
    report = of(row("forward-parity", FAIL))
    found = {"candidates": {"f/lltm": {"source": "lltm=/a/\u202egnp.\x1b.py:f", "sha256": None}}}
    shown = html.page(replace(report, environment={**report.environment, **found}))
    assert "\u202e" not in shown
    assert "\x1b" not in shown
    assert r"\u202egnp.\x1b.py" in shown
