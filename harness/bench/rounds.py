"""Time several works together: a block of each in every round, in a new random order."""

from __future__ import annotations

import random
import statistics
from collections.abc import Mapping
from math import exp, log
from typing import Any, Protocol

import numpy as np

from harness.bench.resampling import resampled_medians
from harness.measuring.clocks import Clock, calls_for
from harness.measuring.work import Work

_RESAMPLES = 2000
_CONFIDENCE = 0.95
_DIGITS = 5


class Sampler(Protocol):
    """What is timed together with others."""

    def sample(self) -> float:
        """Seconds of one call, from one block of calls."""


class WorkSampler:
    """Samples of a work: blocks of about `block` seconds by that clock."""

    def __init__(self, work: Work, timed: Clock, block: float) -> None:
        self._work, self._timed = work, timed
        self._calls = calls_for(block, timed, work)

    def sample(self) -> float:
        """Seconds of one call."""
        return self._timed(self._work, self._calls) / self._calls


def take(samplers: Mapping[str, Sampler], rounds: int, draw: random.Random) -> dict[str, list[float]]:
    """Seconds of one call of each, one value for each round."""
    taken: dict[str, list[float]] = {name: [] for name in samplers}
    for _ in range(rounds):
        for name in draw.sample(list(samplers), len(samplers)):
            taken[name].append(samplers[name].sample())
    return taken


def median(samples: list[float]) -> dict[str, float]:
    """`median`, and `low` and `high`: a 95% bootstrap interval of it."""
    return {key: exp(value) for key, value in interval([log(s) for s in samples]).items()}


def ratio(reference: list[float], samples: list[float]) -> dict[str, float]:
    """The reference's time over this one's, round by round: `median`, `low`, `high`. Above 1, this one is faster."""
    pairs = [log(r / s) for r, s in zip(reference, samples, strict=True)]
    return {key: rounded(exp(value)) for key, value in interval(pairs).items()}


def interval(values: list[float]) -> dict[str, float]:
    """Their `median`, and `low` and `high`: a 95% bootstrap interval of it."""
    medians = resampled_medians([values], _RESAMPLES, seed=0)
    low, high = np.quantile(medians, [(1 - _CONFIDENCE) / 2, (1 + _CONFIDENCE) / 2])
    return {"median": statistics.median(values), "low": float(low), "high": float(high)}


def rounded(value: float) -> float:
    """The value with the significant digits of a measured time."""
    return float(f"{value:.{_DIGITS}g}")


def row_times(samples: list[float]) -> dict[str, Any]:
    """The fields `seconds` and `samples` of a row."""
    return {
        "seconds": {key: rounded(value) for key, value in median(samples).items()},
        "samples": [rounded(sample) for sample in samples],
    }
