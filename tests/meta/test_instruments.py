"""The instruments against each other: which invented samples agree, and what is read of each instrument."""

from __future__ import annotations

import random
from math import exp
from pathlib import Path
from typing import Any

import pytest

from harness.bench import record
from harness.errors import Broken
from harness.gate.sampling import PLANTED
from tools.instruments.agreement import (
    AGREE,
    BENCH,
    CANNOT_TELL,
    DISAGREE,
    GATE,
    INSTRUMENTS,
    PYTEST,
    Judged,
    difference,
    judged,
    overall,
)
from tools.instruments.drawing import DOCUMENT, section
from tools.instruments.instruments import Plan, reading_of_pairs, readings_of_bench, readings_of_session

PLAN = Plan(
    "lltm", "python-autograd", "aten-cpp", "cpu", "float32", (("tutorial", "forward"), ("tutorial", "backward"))
)
RECORDS = sorted(Path("results").glob("*/instruments.json"))


def invented(
    draw: random.Random, noise: float = 0.01, launches: int = 5, common: float = 0.05, **bias: float
) -> dict[str, list[float]]:
    """Ratios around 1.3, with noise of each reading, and with what all readings of a launch have in common.

    `bias` is what an instrument adds to the logarithm; the planted blocks have a tenth more calls.
    """
    launch = [draw.gauss(0.26, common) for _ in range(launches)]
    added = {BENCH: bias.get("bench", 0.0), PYTEST: bias.get("session", 0.0), GATE: bias.get("gate", 0.0)}
    added[PLANTED] = bias.get("planted", -0.0953)
    return {name: [exp(at + more + draw.gauss(0, noise)) for at in launch] for name, more in added.items()}


def verdicts(count: int, **how: Any) -> list[str]:
    draw = random.Random(1)
    return [judged(invented(draw, **how), places=3).verdict for _ in range(count)]


def test_instruments_that_find_the_same_agree() -> None:
    # Each record of 3 places may be wrong in one of 20; beyond the threshold it is so less often.
    found = verdicts(300)
    assert found.count(DISAGREE) <= 300 * 0.05 / 3
    assert found.count(AGREE) >= 290


@pytest.mark.parametrize("instrument", ["bench", "session", "gate"])
@pytest.mark.parametrize("apart", [0.0953, -0.0953])
def test_an_instrument_that_is_a_tenth_off_is_told(instrument: str, apart: float) -> None:
    assert verdicts(100, **{instrument: apart}).count(DISAGREE) >= 99


def test_a_difference_that_changes_no_verdict_of_the_gate_is_none() -> None:
    assert verdicts(100, noise=0.002, session=0.015) == [AGREE] * 100


def test_what_the_launches_have_in_common_cancels() -> None:
    assert verdicts(100, common=0.3).count(AGREE) >= 95


def test_noise_that_hides_a_tenth_is_no_agreement() -> None:
    found = verdicts(100, noise=0.1)
    assert found.count(AGREE) == 0
    assert found.count(DISAGREE) <= 5


def test_a_gate_that_does_not_see_what_was_planted_is_no_agreement() -> None:
    assert verdicts(50, planted=0.0) == [CANNOT_TELL] * 50


def test_a_record_is_as_good_as_its_worst_place() -> None:
    draw = random.Random(0)
    good, bad, unclear = (judged(invented(draw, **how), 3) for how in ({}, {"gate": 0.2}, {"noise": 0.1}))
    assert [each.verdict for each in (good, bad, unclear)] == [AGREE, DISAGREE, CANNOT_TELL]
    assert overall([good, good]) == AGREE
    assert overall([good, unclear]) == CANNOT_TELL
    assert overall([good, unclear, bad]) == DISAGREE


def test_the_interval_is_students() -> None:
    ratios = {BENCH: [exp(0.01), exp(0.02), exp(0.03)], GATE: [1.0, 1.0, 1.0]}
    found = difference(BENCH, GATE, ratios, comparisons=1)
    assert found.ratio == pytest.approx(exp(0.02))
    half = 4.30265 * 0.01 / 3**0.5  # t of 2 degrees of freedom at 97.5%
    assert (found.low, found.high) == pytest.approx((exp(0.02 - half), exp(0.02 + half)))
    wider = difference(BENCH, GATE, ratios, comparisons=9)
    assert wider.low < found.low < found.high < wider.high


def test_two_launches_decide_nothing() -> None:
    with pytest.raises(ValueError, match="there were 2 launches, but should be at least 3"):
        difference(BENCH, GATE, {BENCH: [1.0, 1.0], GATE: [1.0, 1.0]}, comparisons=1)


def test_all_pairs_are_compared() -> None:
    found = judged(invented(random.Random(0)), places=1)
    assert isinstance(found, Judged)
    assert [(one.first, one.second) for one in found.differences] == [(BENCH, PYTEST), (BENCH, GATE), (PYTEST, GATE)]
    assert [(one.first, one.second) for one in found.planted] == [(BENCH, PLANTED), (PYTEST, PLANTED)]


# What is read of each instrument


def row(backend: str, phase: str, median: float) -> dict[str, Any]:
    ratios = {"python-autograd": {"median": median, "low": median - 0.1, "high": median + 0.1}}
    return {"backend": backend, "case": "tutorial", "phase": phase, "clock": "wall", "ratios": ratios}


def test_the_bench_is_read_by_its_ratios() -> None:
    rows = [row("python-autograd", "forward", 1.0), row("aten-cpp", "forward", 1.5), row("aten-cpp", "backward", 1.2)]
    found = readings_of_bench(PLAN, rows)
    assert found["tutorial", "forward"] == {"median": 1.5, "low": 1.4, "high": 1.6}
    assert found["tutorial", "backward"]["median"] == 1.2
    with pytest.raises(Broken, match="the bench has no row of aten-cpp beside python-autograd at tutorial, backward"):
        readings_of_bench(PLAN, rows[:2])


def benchmark(backend: str, phase: str, median: float) -> dict[str, Any]:
    name = f"test_speed[lltm-{backend}-cpu-float32-tutorial-{phase}]"
    return {"group": f"lltm tutorial {phase} cpu float32", "name": name, "stats": {"median": median}}


def test_the_session_is_read_by_its_medians() -> None:
    phases = {"forward": 3.0, "backward": 4.0, "forward+backward": 7.0}
    saved = [benchmark("python-autograd", phase, seconds) for phase, seconds in phases.items()]
    saved += [benchmark("aten-cpp", phase, 2.0) for phase in phases]
    found = readings_of_session(PLAN, saved)
    assert found == {("tutorial", "forward"): {"median": 1.5}, ("tutorial", "backward"): {"median": 2.0}}
    with pytest.raises(Broken, match="session has no lltm tutorial backward cpu float32 of aten-cpp"):
        readings_of_session(PLAN, saved[:4])


def test_the_gate_is_read_as_the_reference_over_the_backend() -> None:
    # Pairs are logarithms of the backend's time over the reference's.
    found = reading_of_pairs([-0.41, -0.4, -0.39] * 10)
    assert found["median"] == pytest.approx(exp(0.4))
    assert exp(0.38) < found["low"] <= found["median"] <= found["high"] < exp(0.42)


# The page


def made(**bias: float) -> dict[str, Any]:
    """A record of three places."""
    draw, places = random.Random(2), []
    for phase in ("forward", "backward", "forward+backward"):
        ratios = invented(draw, **bias)
        launches = [
            {name: {"median": of[k], "low": of[k] * 0.99, "high": of[k] * 1.01} for name, of in ratios.items()}
            for k in range(5)
        ]
        places.append({"case": "tutorial", "phase": phase, "launches": launches})
    settings = {
        "operator": "lltm",
        "reference": "python-autograd",
        "backend": "aten-cpp",
        "dtype": "float32",
        "launches": 5,
    }
    machine = {"gpu": None, "cpu": "a CPU", "torch": "2.0"}
    return {"environment": machine, "settings": settings, "places": places}


def test_the_page_says_what_agrees_and_what_was_told() -> None:
    text = section(made())
    assert text.startswith(
        "**The instruments agree** about `aten-cpp` against `python-autograd` at lltm in float32 on a CPU"
    )
    assert "is told in 6 of 6 comparisons" in text
    assert text.count("| agree |") == 3
    assert all(name in text for name in INSTRUMENTS)


def test_the_page_says_what_disagrees() -> None:
    text = section(made(gate=0.15))
    assert text.startswith("**The instruments disagree**")
    assert "bench over gate: 0.8" in text


def test_the_page_is_what_the_records_draw() -> None:
    document = DOCUMENT.read_text(encoding="utf-8")
    for path in RECORDS:
        assert section(record.read(path, "instruments")) in document, path
