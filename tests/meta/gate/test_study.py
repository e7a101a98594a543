"""The study judges samples as the gate does, and its page shows the committed records."""

from __future__ import annotations

import random
import re
from math import log
from pathlib import Path
from typing import Any

import pytest

from harness.bench.record import read
from harness.rendering.tables import insert
from tests.meta.tiers import TOOL
from tools.study import gate

ROOT = Path(__file__).parents[3]


def _record(noise: float, drift: float = 0.0) -> dict[str, Any]:
    """A study of two sets of two trials, in simulated noise; later measurements are slower by `drift`."""
    draw = random.Random(1)
    trials = []
    for number in range(2):
        for trial in range(2):
            for planted in gate.PLANTED:
                pairs = [[log(1 + planted) + draw.gauss(0, noise) for _ in range(10)] for _ in range(5)]
                base = [1 + abs(draw.gauss(0, noise)) for _ in range(40)]
                head = [(1 + planted) * (1 + drift) * (1 + abs(draw.gauss(0, noise))) for _ in range(40)]
                trials.append(
                    {"set": number, "planted": planted, "trial": trial, "pairs": pairs, "base": base, "head": head}
                )
    names = {"operator": "lltm", "case": "tutorial", "phase": "forward", "backend": "it", "clock": "wall"}
    settings = {"sets": 2, "trials": 2, "launches": 5, "pairs": 10, "benchmark": names}
    return {"environment": {"gpu": None, "cpu": "it", "torch": "2"}, "settings": settings, "trials": trials}


def test_on_a_quiet_machine_every_judge_sees_ten_percent() -> None:
    found = gate.judged(_record(0.005))
    for name, by_planted in found.items():
        assert set(by_planted[0.10]) == {"slower"}, name
    assert set(found[gate.GATE][0.0]) == {"pass"}


def test_a_machine_that_slows_down_makes_the_judges_of_sequences_alarm_and_not_the_gate() -> None:
    found = gate.judged(_record(0.005, drift=0.06))
    for name in gate.SEQUENTIAL_JUDGES:
        assert set(found[name][0.0]) == {"slower"}, name
    assert set(found[gate.GATE][0.0]) == {"pass"}


def test_in_too_much_noise_the_gate_says_that_it_cannot_tell() -> None:
    assert "inconclusive" in gate.judged(_record(0.5))[gate.GATE][0.0]


def test_the_table_has_a_row_for_each_judge() -> None:
    text = gate.drawn(_record(0.005))
    assert re.findall(r"^\| (?!judge|---)(.*?) \|", text, flags=re.MULTILINE) == list(gate.judged(_record(0.005)))
    assert "2 sets of 2 trials, 5 launches of 10 pairs" in text


def test_the_table_has_a_column_for_each_slow_down_that_was_planted() -> None:
    record = _record(0.005)
    record["settings"] |= {"planted": [0.0, 0.05, 0.10], "seconds": 0.002}
    record["trials"] = [trial for trial in record["trials"] if trial["planted"] != 0.03]
    text = gate.drawn(record)
    assert "| judge | 0%: false alarms | 5%: seen | 10%: seen | inconclusive |" in text
    assert "pairs in blocks of 2 ms." in text


RECORDS = sorted(ROOT.glob("results/*/gate-study.json"))


@pytest.mark.long(TOOL)
@pytest.mark.parametrize("path", RECORDS, ids=lambda path: path.parent.name)
def test_the_page_shows_the_record(path: Path) -> None:
    document = (ROOT / gate.DOCUMENT).read_text(encoding="utf-8")
    name = str(path.relative_to(ROOT))
    redraw = f"python -m tools.study.gate --draw {name}"
    assert insert(gate.drawn(read(path, gate.KIND)), document, name) == document, f"out of date: {redraw}"
