"""Every fault of tests/zoo fails the property that must catch it, and the failure says why."""

import re
import zlib
from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest
import torch

from harness.properties import all_properties, multiprocessing
from harness.report.cell import FAIL, NOT_RUN, PASS
from tests.meta import tiers
from tests.zoo import registry as zoo

zoo.load()
pytestmark = pytest.mark.usefixtures("with_the_store")


def _group(operator: str) -> pytest.MarkDecorator:
    """One worker judges what is judged by the exact values of an operator in float32."""
    return pytest.mark.xdist_group(f"zoo-{operator}")


_FAULTS = [pytest.param(fault, id=fault.id, marks=[_group(fault.operator), *marks]) for fault, marks in tiers.faults()]


@pytest.mark.parametrize("fault", _FAULTS)
def test_fault_is_caught(fault: zoo.Fault, monkeypatch: pytest.MonkeyPatch) -> None:
    if "hung" in fault.says:
        monkeypatch.setattr(multiprocessing, "LIMIT", 3.0)  # the usual limit is for machines that are busy
    cell = zoo.judged(fault.function, fault.caught_by, fault.dtype, fault.operator, fault.examples or zoo.EXAMPLES)
    assert cell.verdict == FAIL, f"{fault.mistake} was not caught by {fault.caught_by}: {cell}"
    assert re.search(fault.says, cell.reason), f"caught, but the reason does not match {fault.says!r}: {cell.reason}"


DTYPES = (torch.float32, torch.float64, torch.float16, torch.bfloat16)


def _crossed() -> Iterator[Any]:
    """Each control in each dtype: in one of them by default; in the others with `-m crossing`.

    The first of each operator and the first in each dtype are short.
    """
    drawn = []
    for control in zoo.CONTROLS:
        number = zlib.crc32(control.id.encode())  # of the name, so that a new control does not move the others
        drawn.append((control, DTYPES[number % len(DTYPES)]))
    first = tiers.first_of_each(drawn, lambda one: [one[0].operator, one[1]])
    marks = {(control.id, dtype): its for (control, dtype), its in first}
    for control, dtype in product(zoo.CONTROLS, DTYPES):
        its = marks.get((control.id, dtype), [pytest.mark.crossing])
        its = [pytest.mark.xdist_group(str(dtype)), *its]  # controls of a dtype share oracles
        yield pytest.param(control, dtype, marks=its, id=f"{control.id}-{dtype}")


_EACH_CONTROL = pytest.mark.parametrize(("control", "dtype"), list(_crossed()))
_PLAIN = ("forward-parity", "vjp-parity")


def _is_left_alone(control: zoo.Control, name: str, dtype: torch.dtype) -> str:
    """The verdict, which is no failure."""
    cell = zoo.judged(control.function, name, dtype, control.operator)
    assert cell.verdict in (PASS, NOT_RUN), f"{control.way} was rejected by {name}: {cell.reason}"
    return cell.verdict


@_EACH_CONTROL
def test_plain_calls_of_a_control_are_right(control: zoo.Control, dtype: torch.dtype) -> None:
    for name in _PLAIN:
        if name not in control.gives_up:
            _is_left_alone(control, name, dtype)


@pytest.mark.parametrize(
    ("controls", "name", "dtype"),
    [
        pytest.param(*one, id=f"{one[0][0].operator}-{one[1]}", marks=[_group(one[0][0].operator), *marks])
        for one, marks in tiers.dealt()
    ],
)
def test_a_property_leaves_a_control_of_each_operator_alone(
    controls: list[zoo.Control], name: str, dtype: torch.dtype
) -> None:
    """A dear property is asked of one operator alone, so it must say something about one of the controls."""
    asked = controls if name in tiers.DEAR else controls[:1]
    verdicts = (_is_left_alone(control, name, dtype) for control in asked)
    assert PASS in verdicts or name not in tiers.DEAR, f"{name} says nothing about any control"


#: One control in `_ONE_IN` is judged by every property. The others are judged by what stands above, and by as large a
#: part of the properties that do not take seconds: the soak calls all controls in millions of combinations,
#: `nox -s controls` judges each by every property, and `nox -s conformance` does so with the shipped backends.
_ONE_IN = 12
_SLOW = ("combinations", "fake-devices", "harvested-sizes")


def _drawn(control: zoo.Control) -> int:
    """0 for one control in `_ONE_IN`."""
    return zlib.crc32(control.id.encode()) // len(DTYPES) % _ONE_IN


def _left_out(control: zoo.Control, config: pytest.Config) -> frozenset[str]:
    crossed = "not crossing" not in config.option.markexpr
    if crossed or not _drawn(control):
        return frozenset(_PLAIN)
    drawn = (name for name in all_properties() if zlib.crc32(f"{control.id} {name}".encode()) % _ONE_IN)
    return frozenset({*_SLOW, *drawn, *_PLAIN})


@pytest.mark.long(tiers.ZOO)
@_EACH_CONTROL
def test_control_is_left_alone(control: zoo.Control, dtype: torch.dtype, pytestconfig: pytest.Config) -> None:
    left_out = _left_out(control, pytestconfig) | set(control.gives_up)
    for name, property in all_properties().items():
        if name not in left_out and property.is_asked("cpu", str(dtype).removeprefix("torch.")):
            _is_left_alone(control, name, dtype)


def test_what_controls_give_up_are_properties() -> None:
    assert {name for control in zoo.CONTROLS for name in control.gives_up} <= set(all_properties())
    assert all(len(reason.split()) > 4 for control in zoo.CONTROLS for reason in control.gives_up.values())


def test_there_are_enough_controls() -> None:
    assert len(zoo.controls("lltm")) >= 20


def test_a_fault_that_ran_here_before_is_caught_all_the_same() -> None:
    """Environment variables that a candidate sets here are not passed to the fresh process that judges it."""
    (fault,) = [fault for fault in zoo.faults("lltm") if fault.name == "SetsEnvironment"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LLTM_FAST", "1")
        cell = zoo.judged(fault.function, fault.caught_by, fault.dtype)
    assert cell.verdict == FAIL, cell
    assert re.search("LLTM_FAST=1 after .* in a fresh process", cell.reason)


def test_the_listed_defects_are_shown() -> None:
    """Defects 1-4, 6, 7, 10-14, 17, 18 and 22-28 have a fault here; 19 and 20 have separate tests."""
    shown = {number for fault in zoo.FAULTS for number in fault.defects}
    assert {1, 2, 3, 4, 6, 7, 10, 11, 12, 13, 14, 17, 18, *range(22, 29)} <= shown
