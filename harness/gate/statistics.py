"""Deciding from samples: pure functions of numbers, tested on simulated noise.

A *pair* is one log-ratio of times, head over base, from an ABBA quadruple. Pairs come in *launches*: what one start of
the processes has in common (where memory lay, which core) shifts all its pairs, so that pairs of one launch are not
independent. Resampling draws launches first, and then pairs of each, and so lets both be wrong.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, exp, log

import numpy as np
from numpy.typing import NDArray

#: The pairs of a comparison, launch by launch.
Launches = Sequence[Sequence[float]]

RESAMPLES = 10_000
#: Elements of one block of resamples: what fits in a cache, give or take.
_BLOCK = 2**22
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


def resampled_medians(launches: Launches, resamples: int, seed: int) -> NDArray[np.float64]:
    """Medians of `resamples` bootstrap samples: launches drawn with replacement, then pairs of each."""
    data = [np.asarray(pairs, dtype=np.float64) for pairs in launches]
    if not data or any(len(pairs) == 0 for pairs in data):
        raise ValueError("launches was empty or held an empty launch, but should have at least one pair in each")
    longest = max(len(pairs) for pairs in data)
    # Launches differ in length where one was cut short; a short one is drawn from as often as it is long.
    padded = np.stack([np.pad(pairs, (0, longest - len(pairs)), constant_values=np.nan) for pairs in data])
    lengths = np.array([len(pairs) for pairs in data])
    generator = np.random.default_rng(seed)
    found = []
    step = max(1, _BLOCK // (len(data) * longest))
    for begin in range(0, resamples, step):
        count = min(step, resamples - begin)
        launch = generator.integers(len(data), size=(count, len(data), 1))
        pair = (generator.random((count, len(data), longest)) * lengths[launch]).astype(np.int64)
        drawn = padded[launch, pair]
        drawn[np.arange(longest) >= lengths[launch]] = np.nan
        flat = drawn.reshape(count, -1)
        found.append(np.nanmedian(flat, axis=1) if np.isnan(flat).any() else np.median(flat, axis=1))
    return np.concatenate(found)


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
