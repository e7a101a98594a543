"""The scoreboard is that of the records; which record counts; and that no number is invented."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any
from urllib.parse import unquote

import pytest

from harness.rendering import scoreboard
from harness.rendering.scoreboard import JudgedBackend, Machine, machines
from harness.rendering.scoreboard_pages import pages
from harness.rendering.speedups import NATIVE, REFERENCE, shown, speedups
from harness.report.cell import DECLARED, FAIL, NO_EVIDENCE, NOT_RUN, PASS
from harness.report.levels import GRADIENTS, LEVELS, SAFE, VALUES
from harness.report.report import Report
from tests.meta.conftest import ROOT
from tests.meta.reports import ATTACK, MACHINE, bench, cell, of, of_levels, row, timed
from tools.scoreboard import FOLDER, drawn

ALL = (PASS, PASS, PASS, PASS, PASS)


def judged(*verdicts: str, time: str = "2026-01-01", **changes: Any) -> Report:
    """A report on lltm in `aten-cpp`, with one cell at each level."""
    found = of_levels(*verdicts, **{"backend": "aten-cpp", **changes})
    return Report({**found.environment, "time": time}, True, found.cells, suite=found.suite)


def only(*reports: tuple[str, Report], benches: Any = ()) -> JudgedBackend:
    """The one implementation that these records show."""
    (machine,) = machines(reports, benches)
    (one,) = machine.judged
    return one


@pytest.fixture(scope="module")
def all_pages() -> dict[str, str]:
    return drawn()


class _Addresses(HTMLParser):
    """The links of a page and the places in it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.places: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        if tag == "a":
            self.links.append(str(found["href"]))
        if found.get("id"):
            self.places.add(str(found["id"]))


def test_the_committed_pages_are_those_of_the_records(all_pages: dict[str, str]) -> None:
    there = {str(path.relative_to(ROOT / FOLDER)): path.read_text() for path in (ROOT / FOLDER).rglob("*.html")}
    stale = [name for name in sorted({*there, *all_pages}) if there.get(name) != all_pages.get(name)]
    assert stale == [], "out of date: nox -s scoreboard"


def test_every_link_leads_to_a_place(all_pages: dict[str, str]) -> None:
    found = {ROOT / FOLDER / name: _Addresses(text) for name, text in all_pages.items()}
    for path, page in found.items():
        for link in page.links:
            file, _, place = link.partition("#")
            there = (path.parent / file).resolve() if file else path
            if there in found:
                assert not place or unquote(place) in found[there].places, (path.name, link)
            else:  # a report's page, or a page of the site that is written in Markdown
                assert there.exists() or there.with_suffix(".md").exists(), (path.name, link)


def test_pages_are_small_and_load_nothing(all_pages: dict[str, str]) -> None:
    folders = {name.partition("/")[0] for name in all_pages if "/" in name}
    for name, text in all_pages.items():
        assert len(text) < (250_000 * len(folders) if name == "index.html" else 600_000), name
        assert "<script" not in text, name
        assert "default-src 'none'" in text, name


def test_what_a_record_says_is_text() -> None:
    report = of(
        *judged(*ALL, backend=ATTACK).cells,
        row("compile", FAIL, reason=ATTACK, backend=ATTACK),
        row("error-messages", DECLARED, backend=ATTACK, figures={"seen": ATTACK}),
    )
    known = Report(report.environment, True, report.cells, suite=_with_backend(report, ATTACK))
    for text in pages(machines([("r.json", known)], []), {}).values():
        assert "<script" not in text
        assert "<img" not in text


def _with_backend(report: Report, name: str) -> Any:
    return type(report.suite)(**{**vars(report.suite), "backends": (name,)})


def test_the_newest_full_record_counts_and_no_other() -> None:
    old, new = judged(*ALL), judged(PASS, PASS, FAIL, PASS, PASS, time="2026-02-01")
    assert only(("old", old), ("new", new)).record == "new"
    assert only(("a-new", new), ("old", old)).verdicts[SAFE] == FAIL, "a pass of an older record does not hide it"
    less = judged(PASS, PASS, PASS, time="2026-03-01")
    assert only(("old", old), ("less", less)).record == "old", "it has three fifths of the cells"


def test_a_record_that_asked_too_little_is_no_judgement() -> None:
    assert machines([("study", judged(PASS, PASS))], []) == ()
    draws = judged(PASS, PASS, time="2026-05-01")
    assert only(("draws", draws), ("whole", judged(*ALL))).record == "whole"


def test_a_record_in_which_the_harness_failed_is_no_judgement() -> None:
    """Of fifteen cells one may lack its answer; two make nothing known of the implementation."""
    right = [row(f"right-{number}", backend="aten-cpp") for number in range(8)]
    lost = [cell(NO_EVIDENCE, property=name, backend="aten-cpp") for name in ("layouts", "sizes")]
    one = only(("r", of(*judged(*ALL).cells, *right, *lost[:1])))
    assert one.verdicts[VALUES] == NO_EVIDENCE
    broken = of(*judged(*ALL).cells, *right, *lost)
    assert machines([("broken", broken)], []) == ()
    other = judged(*ALL, backend="python-autograd")
    (machine,) = machines([("broken", broken), ("other", other)], [])
    (left,) = machine.operators[0].left
    assert left.reason == "2 of 15 cells have no answer in broken: why no-evidence"


def test_candidates_are_left_out() -> None:
    assert machines([("candidate", judged(*ALL, backend="mine"))], []) == ()


def test_what_was_not_judged_is_listed_with_its_reason() -> None:
    absent = [row(name, NOT_RUN, backend="python-autograd") for name in ("forward-parity", "vjp-parity", "memory")]
    (machine,) = machines([("r", of(*judged(*ALL).cells, *absent))], [])
    (left,) = machine.operators[0].left
    assert (left.backend, left.verdict, left.reason) == ("python-autograd", NOT_RUN, "why not-run")
    assert "python-autograd</b>: why not-run" in pages((machine,), {})["index.html"]


@pytest.mark.parametrize(
    ("verdicts", "reach"),
    [
        (ALL, "all five levels"),
        ((PASS, PASS, PASS, FAIL, PASS), "up to safe"),
        ((FAIL, PASS, PASS, PASS, PASS), "no level in every dtype"),
        ((PASS, DECLARED, PASS, PASS, PASS), "all five levels, but for what it declares"),
        ((PASS, PASS, PASS), "up to safe"),
    ],
)
def test_how_far_it_reaches(verdicts: tuple[str, ...], reach: str) -> None:
    assert only(("r", judged(*verdicts))).reach == reach


def test_the_number_is_the_largest_error_of_the_level_and_dtype() -> None:
    def used(share: float, name: str, dtype: str, **changes: Any) -> Any:
        return row(name, dtype=dtype, backend="aten-cpp", figures={"worst": {"used": share}}, **changes)

    wrong = {"verdict": FAIL, "level": GRADIENTS}
    report = of(
        used(0.25, "forward-parity", "float32"),
        used(0.5, "sizes", "float32"),
        used(0.75, "sizes", "float16"),
        used(9.0, "layouts", "float32", **wrong),
        row("vjp-parity", backend="aten-cpp"),
        row("memory", backend="aten-cpp"),
    )
    one = only(("r", report))
    assert one.mark(VALUES, "float32") == scoreboard.Mark(PASS, 0.5, 3, 3), "the wrong gradient is not of this level"
    assert one.mark(VALUES, "float16").error == 0.75
    assert one.mark(VALUES).error == 0.75
    assert one.mark(GRADIENTS, "float32") == scoreboard.Mark(FAIL, 9.0, 1, 2)
    assert one.mark(SAFE, "float32").error is None
    assert one.mark(SAFE, "float16") == scoreboard.NOTHING


@pytest.mark.parametrize(
    ("error", "text"),
    [(None, ""), (0.004, "0.00"), (0.8249, "0.82"), (9.996, "10"), (37.4, "37"), (985218.1, "1e6"), (1e400, "∞")],
)
def test_an_error_takes_four_characters(error: float | None, text: str) -> None:
    assert scoreboard.short(error) == text


def test_speed_is_against_the_native_operator_of_the_same_run() -> None:
    both = {REFERENCE: {"median": 2.0, "low": 1.9, "high": 2.1}, NATIVE: {"median": 0.5, "low": 0.4, "high": 0.6}}
    rows = [timed(ratios=both), timed(ratios=both, threads=2), timed(case="small", bytes=3), timed(phase="forward")]
    found = speedups([("bench.json", bench(*rows))], "lltm", "aten-cpp", "cpu")
    (one,) = shown(found, ["float32"])
    assert (one.baseline, one.median, one.low, one.high, one.threads) == (NATIVE, 0.5, 0.4, 0.6, 2)
    assert len(found) == len(rows), "the evidence has all of them"
    (plain,) = speedups([("bench.json", bench(timed(seconds=5e-5)))], "lltm", "aten-cpp", "cpu")
    assert (plain.baseline, plain.median) == (REFERENCE, 2.0)
    assert speedups([("bench.json", bench(timed(REFERENCE)))], "lltm", REFERENCE, "cpu") == (), (
        "it is no rival of itself"
    )


def test_the_newest_bench_record_counts() -> None:
    def at(time: str, seconds: float) -> dict[str, Any]:
        return {**bench(timed(seconds=seconds)), "environment": {**MACHINE, "time": time}}

    found = speedups([("new", at("2026-02-01", 5e-5)), ("old", at("2026-01-01", 1e-5))], "lltm", "aten-cpp", "cpu")
    assert [one.record for one in found] == ["new"]


def test_speed_of_another_machine_is_not_shown() -> None:
    elsewhere = {**bench(timed()), "environment": {**MACHINE, "cpu": "another CPU"}}
    assert only(("r", judged(*ALL)), benches=[("b", elsewhere)]).speedups == ()
    text = pages(machines([("r", judged(*ALL))], [("b", elsewhere)]), {})["index.html"]
    assert "No bench record of this machine" in text
    assert '<td class="speed"></td>' in text
    assert only(("r", judged(*ALL)), benches=[("b", bench(timed()))]).speedups != ()


def test_machines_are_apart_and_gpus_come_first() -> None:
    gpu = judged(*ALL)
    gpu = Report({**gpu.environment, "gpu": "GPU 9000"}, True, gpu.cells, suite=gpu.suite)
    found = machines([("cpu", judged(PASS, PASS, FAIL, PASS, PASS)), ("gpu", gpu)], [])
    assert [machine.slug for machine in found] == ["gpu-9000", "a-cpu"]
    assert [machine.judged[0].reached(PASS) for machine in found] == [len(LEVELS), 2]


def test_a_slug_has_no_sign_that_an_address_could_not_have() -> None:
    assert Machine("Intel(R) Xeon(R) Processor", ()).slug == "intel-r-xeon-r-processor"


def test_reasons_stand_with_the_evidence() -> None:
    cells = [*judged(*ALL).cells, cell(FAIL, backend="aten-cpp", reason="x was 1, but should be 2")]
    text = pages(machines([("r.json", of(*cells))], []), {})["a-cpu/lltm.html"]
    assert "<b>fail</b> sizes (float32)<p>x was 1, but should be 2</p>" in text
    assert "python -m harness html r.json -o report.html" in text
