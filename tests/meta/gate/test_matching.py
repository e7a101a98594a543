"""Benchmarks of two trees: the same, missing, extra, renamed, changed."""

from __future__ import annotations

from typing import Any

from harness.gate.matching import CHANGED, EXTRA, MISSING, RENAMED, match, name, selected


def _benchmark(**changes: Any) -> dict[str, Any]:
    usual = {"operator": "lltm", "backend": "a", "device": "cpu", "dtype": "float32", "case": "c", "sizes": {"n": 1}}
    return {**usual, **changes}


ONE, OTHER = _benchmark(), _benchmark(case="d", sizes={"n": 2})


def test_what_both_have_is_compared() -> None:
    assert match([ONE, OTHER], [OTHER, ONE]) == ([OTHER, ONE], [])
    assert name({**ONE, "phase": "forward", "clock": "wall"}) == "lltm-a-cpu-float32-c-forward-wall"


def test_what_is_gone_or_new_is_told() -> None:
    both, fates = match([ONE], [OTHER])
    assert both == []
    assert [(fate.fate, fate.benchmark) for fate in fates] == [(MISSING, name(ONE)), (EXTRA, name(OTHER))]


def test_a_new_name_for_the_same_sizes_is_a_new_name() -> None:
    for change in ({"case": "z"}, {"backend": "z"}, {"operator": "z"}):
        _, (fate,) = match([ONE], [_benchmark(**change)])
        assert fate.fate == RENAMED
        assert "z" in fate.reason
    for change in ({"case": "z", "backend": "z"}, {"dtype": "float64"}, {"case": "z", "sizes": {"n": 3}}):
        assert [fate.fate for fate in match([ONE], [_benchmark(**change)])[1]] == [MISSING, EXTRA]


def test_other_sizes_under_the_same_name_are_not_compared() -> None:
    both, (fate,) = match([ONE], [_benchmark(sizes={"n": 7})])
    assert both == []
    assert fate.fate == CHANGED
    assert "were n=1 and are n=7" in fate.reason


def test_a_selection_keeps_what_was_asked_for() -> None:
    assert selected([ONE, OTHER], {"case": ("d",), "backend": ()}) == [OTHER]
