"""Deciding from samples: pure functions of numbers, tested on simulated noise.

A *pair* is one log-ratio of times, head over base, from an ABBA quadruple. Pairs come in *launches*: what one start of
the processes has in common (where memory lay, which core) shifts all its pairs, so that pairs of one launch are not
independent. Resampling draws launches first, and then pairs of each, and so lets both be wrong.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil, exp, log

import numpy as np

from harness.bench.resampling import Launches, resampled_medians

RESAMPLES = 10_000
MINIMUM_PAIRS, MINIMUM_LAUNCHES = 40, 3


@dataclass(frozen=True)
class Rule:
    """When a comparison alarms: the one-sided bound at `confidence` beyond `threshold`, and the median beyond `median`.

    The second number keeps out what is certain and too small to matter.
    """

    threshold: float = 0.02
    median: float = 0.03
    confidence: float = 0.99

    def __post_init__(self) -> None:
        if not (0 <= self.threshold <= self.median and 0.5 < self.confidence < 1):
            raise ValueError(
                f"threshold was {self.threshold}, median {self.median} and confidence {self.confidence}, but should be "
                "0 <= threshold <= median and 0.5 < confidence < 1"
            )


@dataclass(frozen=True)
class Estimate:
    """What a comparison says: the ratio of times, its interval, and how sure it is that the ratio is beyond the bound.

    `low` and `high` are one-sided bounds of the ratio at the rule's confidence. `p_slower` is the chance of resamples
    in which the ratio is not above 1 + threshold, `p_faster` of those in which it is not below 1 / (1 + threshold).
    """

    ratio: float
    low: float
    high: float
    p_slower: float
    p_faster: float
    pairs: int
    launches: int


def estimate(
    launches: Launches, rule: Rule, seed: int = 0, comparisons: int = 1, resamples: int = RESAMPLES
) -> Estimate:
    """The estimate of one comparison out of `comparisons`, whose number says how fine `p` has to be at the least."""
    resamples = max(resamples, ceil(2 * comparisons / (1 - rule.confidence)))
    medians = resampled_medians(launches, resamples, seed)
    bound = log(1 + rule.threshold)
    low, high = np.quantile(medians, [1 - rule.confidence, rule.confidence])
    return Estimate(
        ratio=exp(float(np.median(np.concatenate([np.asarray(pairs) for pairs in launches])))),
        low=exp(float(low)),
        high=exp(float(high)),
        p_slower=(1 + int((medians <= bound).sum())) / (resamples + 1),
        p_faster=(1 + int((medians >= -bound).sum())) / (resamples + 1),
        pairs=sum(len(pairs) for pairs in launches),
        launches=len(launches),
    )


def holm(p: Mapping[str, float]) -> dict[str, float]:
    """p-values adjusted for their number, by Holm's step-down method: the chance of any false alarm is kept."""
    adjusted, running = {}, 0.0
    for rank, name in enumerate(sorted(p, key=lambda name: p[name])):
        running = max(running, min(1.0, (len(p) - rank) * p[name]))
        adjusted[name] = running
    return adjusted


def alarms(estimates: Mapping[str, Estimate], rule: Rule, faster: bool = False) -> set[str]:
    """The names of the comparisons that are slower (or faster) beyond doubt and beyond what is let pass."""
    adjusted = holm({name: e.p_faster if faster else e.p_slower for name, e in estimates.items()})
    return {
        name
        for name, e in estimates.items()
        if adjusted[name] <= 1 - rule.confidence
        and (1 / e.ratio if faster else e.ratio) >= 1 + rule.median
        and enough(e)
    }


def enough(found: Estimate) -> bool:
    """Whether there are as many pairs and launches as an answer takes."""
    return found.pairs >= MINIMUM_PAIRS and found.launches >= MINIMUM_LAUNCHES


def abba(first: float, second: float, third: float, fourth: float) -> float:
    """The pair of an ABBA quadruple of times: log of B over A, in which what drifts evenly cancels."""
    return (log(second) + log(third) - log(first) - log(fourth)) / 2
