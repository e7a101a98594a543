"""The section of docs/performance.md about a record of the instruments."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import exp, log
from pathlib import Path
from typing import Any

from harness.gate.sampling import PLANTED
from harness.rendering.tables import plain
from tools.instruments.agreement import (
    BENCH,
    CONFIDENCE,
    DISAGREE,
    GATE,
    INSTRUMENTS,
    THRESHOLD,
    Difference,
    Judged,
    judged,
    mean,
    overall,
)

DOCUMENT = Path("docs/performance.md")


def judgements(record: Mapping[str, Any]) -> list[Judged]:
    """The verdict on each place of a record, in its order."""
    return [judged(_ratios(place), len(record["places"])) for place in record["places"]]


def _ratios(place: Mapping[str, Any]) -> dict[str, list[float]]:
    return {name: [launch[name]["median"] for launch in place["launches"]] for name in (*INSTRUMENTS, PLANTED)}


def section(record: Mapping[str, Any]) -> str:
    """The verdict, what each instrument found at each place, and how far they are apart."""
    machine, settings, found = record["environment"], record["settings"], judgements(record)
    planted = [difference for each in found for difference in each.planted]
    told = sum(difference.verdict == DISAGREE for difference in planted)
    lines = [
        f"**The instruments {overall(found)}** about `{settings['backend']}` against `{settings['reference']}` at "
        f"{settings['operator']} in {settings['dtype']} on {plain(machine['gpu'] or machine['cpu'])}, "
        f"torch {machine['torch']}, {settings['launches']} launches. Two disagree if the whole interval of their "
        f"difference is beyond {THRESHOLD:.0%}; all intervals together have a confidence of {CONFIDENCE:.0%}. "
        f"The tenth more calls that was planted is told in {told} of {len(planted)} comparisons.",
        "",
        f"| case, phase | {' | '.join(INSTRUMENTS)} | verdict |",
        f"|---|{'---|' * len(INSTRUMENTS)}---|",
    ]
    for place, each in zip(record["places"], found, strict=True):
        ratios = _ratios(place)
        cells = [_spread(ratios[name]) for name in INSTRUMENTS]
        lines.append(f"| {place['case']}, {place['phase']} | {' | '.join(cells)} | {each.verdict} |")
    lines += ["", "A cell has the mean of the launches, and the least and the greatest of them.", ""]
    lines += ["| case, phase | differences | to the planted blocks |", "|---|---|---|"]
    for place, each in zip(record["places"], found, strict=True):
        cells = [_listed(each.differences), _listed(each.planted)]
        lines.append(f"| {place['case']}, {place['phase']} | {' | '.join(cells)} |")
    lines += ["", *_coverage(record)]
    return "\n".join(lines).rstrip() + "\n"


def _spread(ratios: list[float]) -> str:
    return f"{mean(ratios):.3f} ({min(ratios):.3f}-{max(ratios):.3f})"


def _listed(differences: Iterable[Difference]) -> str:
    return "<br>".join(
        f"{one.first} over {one.second}: {one.ratio:.3f} ({one.low:.3f}-{one.high:.3f}), {one.verdict}"
        for one in differences
    )


def _coverage(record: Mapping[str, Any]) -> list[str]:
    """How often an instrument's interval of one launch holds the mean that another one finds in all of them."""
    said = []
    for own, other in ((BENCH, GATE), (GATE, BENCH)):
        held = [
            launch[own]["low"] <= mean(_ratios(place)[other]) <= launch[own]["high"]
            for place in record["places"]
            for launch in place["launches"]
        ]
        said.append(f"that of {own} holds the mean of {other} in {sum(held)} of {len(held)}")
    return [
        f"The interval that an instrument gives for one launch knows nothing of other launches: {'; '.join(said)}."
        f" From launch to launch the ratio of {BENCH} varies by {_variation(record, BENCH):.1%} (standard deviation), "
        f"that of {GATE} by {_variation(record, GATE):.1%}."
    ]


def _variation(record: Mapping[str, Any], name: str) -> float:
    """The standard deviation of the logarithm from launch to launch, over all places."""
    squares = count = 0.0
    for place in record["places"]:
        ratios = _ratios(place)[name]
        middle = log(mean(ratios))
        squares += sum((log(ratio) - middle) ** 2 for ratio in ratios)
        count += len(ratios) - 1
    return exp((squares / count) ** 0.5) - 1
