"""Do two instruments agree? Pure functions of what each of them found, launch by launch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from math import exp, log, sqrt

import numpy as np
from scipy.stats import t

from harness.gate.sampling import PLANTED
from harness.gate.statistics import MINIMUM_LAUNCHES, Rule
from harness.gate.verdict import VISIBLE

BENCH, PYTEST, GATE = INSTRUMENTS = ("bench", "pytest-benchmark", "gate")
AGREE, DISAGREE, CANNOT_TELL = VERDICTS = ("agree", "disagree", "cannot tell")

#: Of all intervals of a record together.
CONFIDENCE = 0.95
#: Differences up to here change no verdict of the gate.
THRESHOLD = Rule().threshold


@dataclass(frozen=True)
class Difference:
    """What the first instrument finds over what the second finds; `low` and `high` are an interval of it."""

    first: str
    second: str
    ratio: float
    low: float
    high: float

    @property
    def verdict(self) -> str:
        """`disagree` if the whole interval is beyond THRESHOLD, `cannot tell` if it has a difference of VISIBLE."""
        if self.low > 1 + THRESHOLD or self.high < 1 / (1 + THRESHOLD):
            return DISAGREE
        if self.low <= 1 / (1 + VISIBLE) or self.high >= 1 + VISIBLE:
            return CANNOT_TELL
        return AGREE


@dataclass(frozen=True)
class Judged:
    """The differences at one place: those of the instruments, and those of the first two to the planted blocks."""

    differences: tuple[Difference, ...]
    planted: tuple[Difference, ...]

    @property
    def verdict(self) -> str:
        """The worst of the differences; `cannot tell` if one does not show what was planted."""
        found = {difference.verdict for difference in self.differences}
        if DISAGREE in found:
            return DISAGREE
        told = all(difference.verdict == DISAGREE for difference in self.planted)
        return AGREE if found == {AGREE} and told else CANNOT_TELL


def difference(
    first: str, second: str, ratios: Mapping[str, Sequence[float]], comparisons: int, confidence: float = CONFIDENCE
) -> Difference:
    """How far two instruments are apart, from the ratios of each in the same launches.

    Student's interval of the mean of the differences of logarithms, at a confidence that is divided among
    `comparisons` (Bonferroni). Raises ValueError for fewer than MINIMUM_LAUNCHES launches.
    """
    apart = np.log(np.asarray(ratios[first], dtype=float)) - np.log(np.asarray(ratios[second], dtype=float))
    if (launches := len(apart)) < MINIMUM_LAUNCHES:
        raise ValueError(f"there were {launches} launches, but should be at least {MINIMUM_LAUNCHES}")
    middle, half = (
        float(apart.mean()),
        _quantile(confidence, comparisons, launches) * float(apart.std(ddof=1)) / sqrt(launches),
    )
    return Difference(first, second, exp(middle), exp(middle - half), exp(middle + half))


@cache
def _quantile(confidence: float, comparisons: int, launches: int) -> float:
    """Student's, of both sides."""
    return float(t.ppf(1 - (1 - confidence) / (2 * comparisons), launches - 1))


def judged(ratios: Mapping[str, Sequence[float]], places: int) -> Judged:
    """The verdict on one of `places` places. `ratios` are those of each instrument, and of the planted blocks."""
    pairs = list(combinations(INSTRUMENTS, 2))
    comparisons = places * len(pairs)
    return Judged(
        tuple(difference(first, second, ratios, comparisons) for first, second in pairs),
        tuple(difference(first, PLANTED, ratios, comparisons) for first in (BENCH, PYTEST)),
    )


def mean(ratios: Sequence[float]) -> float:
    """The geometric mean."""
    return exp(sum(log(ratio) for ratio in ratios) / len(ratios))


def overall(found: Sequence[Judged]) -> str:
    """The verdict of a record: the worst of its places."""
    verdicts = {each.verdict for each in found}
    return DISAGREE if DISAGREE in verdicts else CANNOT_TELL if verdicts != {AGREE} else AGREE
