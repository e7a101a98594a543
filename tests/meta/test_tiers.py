"""The short tier is no hole: what is long has an example in it, and each property of each operator is held there."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pytest
import torch

from harness.properties import all_properties
from tests.conftest import COLLECTED
from tests.meta import tiers
from tests.meta.conftest import Run
from tests.zoo import registry as zoo

zoo.load()


def _kinds(marks: list[pytest.MarkDecorator] | tuple[pytest.MarkDecorator, ...]) -> list[str]:
    return [mark.args[0] for mark in marks if mark.name == "long"]


def test_what_is_long_is_of_a_kind_and_has_an_example_in_the_short_tier(pytestconfig: pytest.Config) -> None:
    """Of all tests that this run collected; `nox -s tests` collects all that there are."""
    short: dict[str, bool] = defaultdict(bool)
    files: dict[Path, bool] = defaultdict(bool)
    for item in pytestconfig.stash[COLLECTED]:
        function = getattr(item, "originalname", item.name)
        mark = item.get_closest_marker("long")
        assert mark is None or (mark.args and mark.args[0] in tiers.KINDS), f"{item.nodeid}: {mark}"
        files[item.path] |= mark is None
        is_there = mark is None or mark.args[0] in (tiers.TOOL, tiers.START, tiers.WHOLE) or function in _WHOLE
        short[f"{item.path}::{function}"] |= is_there
    assert [function for function, is_there in short.items() if not is_there] == []
    assert [path for path, is_there in files.items() if not is_there] == []


#: Functions that are long as a whole; the value is the function that has their examples.
_WHOLE = {"test_control_is_left_alone": "test_a_property_leaves_a_control_of_each_operator_alone"}


def test_each_property_of_an_operator_catches_a_fault_in_the_short_tier() -> None:
    short = [fault for fault, marks in tiers.faults() if not marks]
    caught, all_caught = (
        {(fault.operator, fault.caught_by) for fault in some if fault.caught_by not in tiers.DEAR}
        for some in (short, zoo.FAULTS)
    )
    assert caught == all_caught
    assert {fault.caught_by for fault in short} == {fault.caught_by for fault in zoo.FAULTS}
    assert {fault.operator for fault in short} == {control.operator for control in zoo.CONTROLS}
    assert len(short) < len(zoo.FAULTS) / 2


def test_each_property_leaves_a_control_of_each_operator_alone() -> None:
    found, short = defaultdict(set), defaultdict(set)
    for (controls, name, dtype), marks in tiers.dealt():
        assert not any(name in control.gives_up for control in controls)
        assert all_properties()[name].is_asked("cpu", str(dtype).removeprefix("torch."))
        found[name] |= {control.operator for control in controls}
        if not marks:
            short[name] |= {control.operator for control in controls}
    assert found.keys() >= {fault.caught_by for fault in zoo.FAULTS}
    for name, operators in found.items():
        able = {control.operator for control in zoo.CONTROLS if name not in control.gives_up}
        assert operators == able if name not in tiers.DEAR else len(operators) == 1, name
    assert short.keys() == found.keys()
    assert set().union(*short.values()) == set().union(*found.values())


def test_the_first_with_a_new_key_is_short() -> None:
    found = tiers.first_of_each(["ab", "a", "bc", "c"], list)
    assert [(item, _kinds(marks)) for item, marks in found] == [
        ("ab", []),
        ("a", [tiers.ZOO]),
        ("bc", []),
        ("c", [tiers.ZOO]),
    ]


def test_the_short_tier_has_each_value_of_each_axis() -> None:
    found = tiers.each_once("abc", (torch.float32, torch.bfloat16))
    assert len(found) == 6
    assert [one.values for one in found if not one.marks] == [
        ("a", torch.float32),
        ("b", torch.bfloat16),
        ("c", torch.float32),
    ]
    assert [_kinds(one.marks) for one in tiers.first_alone("ab")] == [[], [tiers.AGAIN]]


@pytest.mark.parametrize("workers", tiers.first_alone("01", tiers.START))
def test_what_was_left_out_is_told(workers: str, python: Run) -> None:
    where = ["tests/meta/deriving/test_mutants.py", "-k", "noticed and softmax", "-p", "no:cacheprovider"]
    done = python("-m", "pytest", *where, "-n", workers)
    line = "long tests that were left out: 1; `nox -s tests -- --all` runs them too"
    assert line in done.stdout.splitlines(), done.stdout + done.stderr
