"""The gate's decision on simulated samples: what is noise, what is detected, and what remains undecided."""

from __future__ import annotations

from math import exp

import numpy as np
import pytest

from harness.bench.resampling import resampled_medians
from harness.gate.statistics import Estimate, Rule, abba, alarms, enough, estimate, holm
from tests.meta.gate.simulation import FEW, NOISES, Noise, alarm_rate, pairs

RULE = Rule()
TRIALS = 60


def _of(ratio: float, noise: Noise = NOISES["quiet"], seed: int = 1) -> Estimate:
    return estimate(pairs(np.random.default_rng(seed), noise, ratio - 1), RULE)


@pytest.mark.parametrize("noise", NOISES.values(), ids=NOISES)
def test_noise_alone_does_not_alarm(noise: Noise) -> None:
    assert alarm_rate(noise, 0.0, TRIALS, seed=1) == 0


@pytest.mark.parametrize("noise", NOISES.values(), ids=NOISES)
def test_what_is_below_the_threshold_does_not_alarm(noise: Noise) -> None:
    assert alarm_rate(noise, 0.015, TRIALS, seed=2) <= 0.02


@pytest.mark.parametrize(
    ("name", "change", "least"),
    [
        ("quiet", 0.05, 1.0),
        ("quiet", 0.1, 1.0),
        ("usual", 0.05, 0.5),
        ("usual", 0.1, 1.0),
        ("launches differ", 0.1, 0.9),
        ("interrupted", 0.1, 0.9),
        ("correlated", 0.1, 0.5),
    ],
)
def test_a_slow_down_alarms(name: str, change: float, least: float) -> None:
    assert alarm_rate(NOISES[name], change, TRIALS, seed=3) >= least


def test_pairs_of_one_launch_are_not_taken_for_independent() -> None:
    """With launches that differ, a bootstrap of pairs alone is wrongly confident of their common shift."""
    generator, noise = np.random.default_rng(4), Noise(pair=0.01, launch=0.01)
    naive = ours = 0
    for _ in range(100):
        drawn = pairs(generator, noise, 0.0)
        as_one = [[pair for launch in drawn for pair in launch]]
        naive += float(np.quantile(resampled_medians(as_one, FEW, 0), 0.01)) > 0
        ours += float(np.quantile(resampled_medians(drawn, FEW, 0), 0.01)) > 0
    assert naive >= 15
    assert ours <= naive / 2


def test_the_bound_covers_the_truth() -> None:
    generator, noise = np.random.default_rng(5), NOISES["usual"]
    missed = sum(estimate(pairs(generator, noise, 0.05), RULE, resamples=FEW).low > 1.05 for _ in range(100))
    assert missed <= 4


def test_a_median_below_three_percent_is_let_pass_however_sure_it_is() -> None:
    certain = _of(1.025, Noise(pair=0.0005))
    assert certain.p_slower < 0.001
    assert not alarms({"it": certain}, RULE)
    assert alarms({"it": certain}, Rule(threshold=0.02, median=0.02))


def test_what_is_faster_is_told_apart() -> None:
    found = {"it": _of(1 / 1.1)}
    assert not alarms(found, RULE)
    assert alarms(found, RULE, faster=True)


@pytest.mark.parametrize(("launches", "each"), [(2, 30), (3, 13)])
def test_too_few_pairs_or_launches_never_alarm(launches: int, each: int) -> None:
    drawn = pairs(np.random.default_rng(6), NOISES["quiet"], 0.5, launches, each)
    assert not enough(estimate(drawn, RULE))
    assert not alarms({"it": estimate(drawn, RULE)}, RULE)


def test_holm_steps_down() -> None:
    assert holm({"a": 0.01, "b": 0.04, "c": 0.03}) == pytest.approx({"a": 0.03, "c": 0.06, "b": 0.06})
    assert holm({"a": 0.9, "b": 0.8}) == {"b": 1.0, "a": 1.0}
    assert holm({}) == {}


def test_one_borderline_comparison_of_many_does_not_alarm() -> None:
    one = Estimate(1.04, 1.021, 1.06, 0.005, 1.0, 50, 5)
    quiet = Estimate(1.0, 0.99, 1.01, 1.0, 1.0, 50, 5)
    assert alarms({"it": one}, RULE)
    assert not alarms({"it": one} | {str(k): quiet for k in range(9)}, RULE)


def test_many_comparisons_leave_room_for_an_alarm() -> None:
    """The smallest p that the resamples can give, times the number of comparisons, is still below the level."""
    sure = estimate(pairs(np.random.default_rng(7), NOISES["quiet"], 0.2), RULE, comparisons=500)
    quiet = Estimate(1.0, 0.99, 1.01, 1.0, 1.0, 50, 5)
    assert alarms({"it": sure} | {str(k): quiet for k in range(499)}, RULE) == {"it"}


def test_an_abba_quadruple_cancels_an_even_drift() -> None:
    drift = [1.0 * 1.1**k for k in range(4)]
    a, b = 1.0, 1.2
    assert exp(abba(a * drift[0], b * drift[1], b * drift[2], a * drift[3])) == pytest.approx(1.2)


def test_the_same_seed_gives_the_same_estimate() -> None:
    drawn = pairs(np.random.default_rng(8), NOISES["usual"], 0.03)
    assert estimate(drawn, RULE, seed=3) == estimate(drawn, RULE, seed=3)
    assert estimate(drawn, RULE, seed=3) != estimate(drawn, RULE, seed=4)


def test_launches_of_different_length_count_by_their_pairs() -> None:
    generator = np.random.default_rng(9)
    drawn = [generator.normal(0.1, 0.01, n).tolist() for n in (20, 12, 8)]
    found = estimate(drawn, RULE)
    assert (found.pairs, found.launches) == (40, 3)
    assert found.low > 1.08
    assert found.high < 1.13


def test_an_empty_launch_is_refused() -> None:
    with pytest.raises(ValueError, match="held an empty launch"):
        estimate([[0.1], []], RULE)


@pytest.mark.parametrize("wrong", [{"threshold": 0.05}, {"confidence": 0.5}, {"threshold": -0.01}])
def test_a_rule_that_cannot_be_meant_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="0 <= threshold <= median"):
        Rule(**wrong)
