"""The pictures of a bench record: their content, and what they leave out."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from harness.__main__ import main
from harness.rendering import html, speed
from tests.meta.reports import ATTACK, CPU, MACHINE, bench, one_of_each, timed

REFERENCE = timed("python-autograd")


def test_ratios_are_drawn_beside_the_reference_and_not_of_it() -> None:
    slow = timed("slow-one", 4e-4)
    (chart,) = speed.ratios(bench(REFERENCE, timed(seconds=5e-5), slow)).drawn
    assert [f">{name}<" in chart.svg for name in ("aten-cpp", "slow-one", "python-autograd")] == [True, True, False]
    assert ">— tutorial —<" in chart.svg
    assert chart.title == "eager calls, 1 thread"
    assert chart.summary == "At most 2 times as fast (1.8 to 2.2): aten-cpp, forward+backward, tutorial."
    assert [name for name, *_ in chart.legend] == ["forward", "backward", "forward+backward"]
    assert [f">{tick}<" in chart.svg for tick in ("0.25", "0.5", "1", "2")] == [True] * 4


def test_what_was_not_timed_together_has_pictures_of_its_own() -> None:
    rows = [REFERENCE, timed(), timed(threads=2), timed(device="cuda", clock="graph", threads=None)]
    titles = [chart.title for chart in speed.ratios(bench(*rows)).drawn]
    assert titles == ["eager calls, 1 thread", "eager calls, 2 threads", "in a CUDA graph"]


def test_the_roof_is_that_of_the_run() -> None:
    (chart,) = speed.roofline(bench(REFERENCE, timed(seconds=4e-5))).drawn
    assert chart.summary.startswith("At most 50% of what the machine can: aten-cpp")
    assert "10 GB/s of copies and 100 GFLOP/s" in chart.summary, "the largest copy, which no cache holds"
    assert ">10¹¹<" in chart.svg


def test_without_products_or_ceilings_there_is_no_roof() -> None:
    assert speed.roofline(bench(timed(flops=0))).drawn == ()
    assert speed.roofline(bench(timed(dtype="float64"))).drawn == ()


def test_time_grows_with_size() -> None:
    rows = [timed(case=case, bytes=size, seconds=size / 1e9) for case, size in (("large", 3e7), ("tutorial", 3e5))]
    (chart,) = speed.times(bench(*rows, timed(phase="forward"))).drawn
    assert chart.summary.startswith("Forward and backward of tutorial, large;")


def test_no_two_backends_look_alike() -> None:
    names = [f"backend-{number}" for number in range(20)]
    (chart,) = speed.times(bench(*map(timed, names))).drawn
    assert len({(series, marker) for _, series, marker in chart.legend}) == len(names)


def test_the_page_says_where_it_was_timed_and_what_was_not() -> None:
    report = one_of_each()
    missing = [{"operator": "lltm", "backend": "mine", "device": "cpu", "dtype": None, "reason": "it is wrong"}]
    text = html.page(report, bench(REFERENCE, timed(), missing=missing))
    assert "What was not timed" in text
    assert "<dt>lltm / mine / cpu / every dtype</dt><dd>it is wrong</dd>" in text
    assert "another machine" not in text
    other = {**bench(REFERENCE, timed()), "environment": {**MACHINE, "cpu": "another CPU"}}
    assert "This is another machine" in html.page(report, other)
    assert 'id="speed"' not in html.page(report)


def test_names_of_a_bench_record_are_text() -> None:
    rows = [timed(ATTACK, case=ATTACK, operator=ATTACK), timed("python-autograd", operator=ATTACK)]
    missing = [{"operator": ATTACK, "backend": ATTACK, "device": ATTACK, "dtype": ATTACK, "reason": ATTACK}]
    text = html.page(one_of_each(), bench(*rows, missing=missing))
    assert text.count("<script") == html.page(one_of_each()).count("<script")
    assert "<img" not in text


def test_the_command_takes_a_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file, page = tmp_path / "bench.json", tmp_path / "page.html"
    file.write_text(json.dumps(bench(REFERENCE, timed())))
    monkeypatch.setattr(sys, "argv", ["harness", "html", str(CPU), "--bench", str(file), "-o", str(page)])
    assert main() == 0
    assert "times as fast as python-autograd" in page.read_text()
    file.write_text("{")
    assert main() == 2
    assert f"--bench: {file} is not JSON" in capsys.readouterr().err
