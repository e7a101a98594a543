"""Decide from samples: pure functions of numbers, tested on simulated noise.

A *pair* is one log-ratio of times, head over base, from an ABBA quadruple. Pairs come in *launches*, which
are starts of the processes. The conditions of a launch (addresses of memory, the core) shift all its pairs, so the
pairs of one launch are not independent. Resampling therefore draws launches first, and then pairs of each.
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

    The second number excludes differences that are certain but too small to matter.
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
    """The result of a comparison: the ratio of times, its interval, and p-values that it is not beyond the threshold.

    `low` and `high` are one-sided bounds of the ratio at the rule's confidence. `p_slower` is the share of resamples
    in which the ratio is not above 1 + threshold, `p_faster` that of those where it is not below 1 / (1 + threshold).
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
    """The estimate of one comparison out of `comparisons`; this number decides how finely `p` must be resolved."""
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
    """p-values adjusted by Holm's step-down method, which bounds the probability of any false alarm."""
    adjusted, running = {}, 0.0
    for rank, name in enumerate(sorted(p, key=lambda name: p[name])):
        running = max(running, min(1.0, (len(p) - rank) * p[name]))
        adjusted[name] = running
    return adjusted


def alarms(estimates: Mapping[str, Estimate], rule: Rule, faster: bool = False) -> set[str]:
    """The names of the comparisons that are slower (or faster) with the rule's confidence and beyond its limits."""
    adjusted = holm({name: e.p_faster if faster else e.p_slower for name, e in estimates.items()})
    return {
        name
        for name, e in estimates.items()
        if adjusted[name] <= 1 - rule.confidence
        and (1 / e.ratio if faster else e.ratio) >= 1 + rule.median
        and enough(e)
    }


def enough(found: Estimate) -> bool:
    """Whether there are enough pairs and launches for a decision."""
    return found.pairs >= MINIMUM_PAIRS and found.launches >= MINIMUM_LAUNCHES


def abba(first: float, second: float, third: float, fourth: float) -> float:
    """The pair of an ABBA quadruple of times: log of B over A, in which a linear drift cancels."""
    return (log(second) + log(third) - log(first) - log(fourth)) / 2
