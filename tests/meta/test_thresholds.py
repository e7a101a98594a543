"""The drawn faults of tests/zoo/thresholds: each is wrong at its witness, and its honest twin is right there."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.zoo.thresholds.draw import EACH, KINDS, draw
from tests.zoo.thresholds.drawn import Drawn
from tests.zoo.thresholds.facts import FACTS
from tests.zoo.thresholds.loading import loaded
from tests.zoo.thresholds.observing import differs, errors

_SEED = 0
_DRAWN = draw(_SEED)


def test_a_seed_gives_the_same_faults() -> None:
    assert draw(_SEED) == _DRAWN
    assert draw(_SEED + 1) != _DRAWN


def test_there_are_faults_of_every_class_for_every_operator() -> None:
    there = Counter((drawn.kind, drawn.operator) for drawn in _DRAWN)
    assert there == {(kind, operator): EACH for kind in KINDS for operator in FACTS}
    assert len(_DRAWN) >= 72


def test_no_two_faults_are_alike() -> None:
    assert len({drawn.source for drawn in _DRAWN}) == len(_DRAWN)


def _id(drawn: Drawn) -> str:
    return f"{_DRAWN.index(drawn)}-{drawn.kind}-{drawn.operator}-{drawn.variant}"


@pytest.mark.parametrize("drawn", _DRAWN, ids=_id)
def test_fault_is_wrong_at_its_witness_and_its_twin_is_right(drawn: Drawn) -> None:
    with loaded(drawn.operator, drawn.source) as fault, loaded(drawn.operator, drawn.honest) as honest:
        assert not errors(drawn, honest), f"the honest twin is wrong: {drawn.words}"
        assert differs(drawn, fault, honest), f"the fault is right: {drawn.words}"
