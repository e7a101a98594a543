"""Simulated pairs: with a known change, in noise of a known kind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import log

import numpy as np

from harness.bench.resampling import Launches
from harness.gate.statistics import Rule, alarms, estimate


@dataclass(frozen=True)
class Noise:
    """The parts of a log-ratio besides the change.

    `pair` and `launch` are standard deviations: of each pair, and of the part that all pairs of a launch share.
    `outliers` is the probability of an interruption, which makes either side up to three times as slow. `correlation`
    is that of a pair with the previous one.
    """

    pair: float = 0.01
    launch: float = 0.0
    outliers: float = 0.0
    correlation: float = 0.0


NOISES: Mapping[str, Noise] = {
    "quiet": Noise(pair=0.005),
    "usual": Noise(pair=0.02, launch=0.003, outliers=0.05),
    "launches differ": Noise(pair=0.01, launch=0.01),
    "interrupted": Noise(pair=0.02, outliers=0.3),
    "correlated": Noise(pair=0.03, correlation=0.7),
}


def pairs(generator: np.random.Generator, noise: Noise, change: float, launches: int = 5, each: int = 10) -> Launches:
    """Log-ratios of a change by `change`, launch by launch."""
    found = []
    for _ in range(launches):
        own = generator.normal(0, noise.pair, each)
        for k in range(1, each):
            own[k] = noise.correlation * own[k - 1] + np.sqrt(1 - noise.correlation**2) * own[k]
        own += log(1 + change) + generator.normal(0, noise.launch)
        struck = generator.random(each) < noise.outliers
        own += struck * generator.choice([-1, 1], each) * generator.uniform(0, log(3), each)
        found.append(own.tolist())
    return found


#: Fewer than in the gate, because many samples are judged; enough for a level of 1%.
FEW = 1000


def alarm_rate(noise: Noise, change: float, trials: int, seed: int, confirmed: bool = True) -> float:
    """The rate of alarms for a change, each confirmed by a second sample as in the gate."""
    generator, rule, seen = np.random.default_rng(seed), Rule(), 0
    for _ in range(trials):
        tries = [
            {"it": estimate(pairs(generator, noise, change), rule, resamples=FEW)} for _ in range(2 if confirmed else 1)
        ]
        seen += all(alarms(found, rule) for found in tries)
    return seen / trials
