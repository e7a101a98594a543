"""What is `long`, and so left out by `nox -s tests` and run by `nox -s tests -- --all`.

Five kinds of tests are long, and no test is long because it is slow:

- "zoo": a fault, a control, an attack or a mutant of which the short tier has another one of the same kind;
- "again": the same test with another parameter that costs a build or a judge of its own, and may show what a change of
  one parameter breaks;
- "tool": a whole run of a tool of `tools/` or of `museum/`, whose parts have short tests;
- "start": a run with workers of pytest-xdist, which import all anew, or of a package that is built and installed;
- "whole": a whole command, from its arguments to its report, of whose parts the same file has shorter tests; among them
  all that compare two runs of one command.

`test_tiers.py` holds the first two to it: every test function has a part in the short tier. Every file has tests there.
And there, for every operator, each property with a fault catches one; dear properties do so for one operator. Each
leaves a control of LLTM alone, and one in three that of another operator.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from itertools import product
from typing import Any, TypeVar

import pytest
import torch

from backends.base import CPU, CompiledOperator
from harness import discovery
from harness.judging.property import Property
from harness.properties import all_properties
from spec.contract import DTYPES
from tests.zoo import registry as zoo
from tests.zoo.registry import Control, Fault

T = TypeVar("T")

ZOO, AGAIN, TOOL, START, WHOLE = KINDS = ("zoo", "again", "tool", "start", "whole")

#: Properties that take seconds for some operators: the short tier asks them of a control of LLTM alone, which all of
#: them have something to say about, and of one fault each, and of the first of each kind of an operator.
DEAR = frozenset(
    {
        "combinations",
        "compile",
        "concurrent-threads",
        "drawn-calls",
        "export",
        "fake-devices",
        "global-state",
        "gradient-subsets",
        "harvested-sizes",
        "memory",
        "multiprocessing",
        "recurrence",
        "sizes",
        "uninitialised-memory",
        "unreached-code",
    }
)
_ALL_SAY = "lltm"
#: Of the other properties and operators the short tier has one pair in three.
_ONE_IN = 3


def first_of_each(
    items: Iterable[T], keys: Callable[[T], Sequence[Hashable]], kind: str = ZOO
) -> Iterator[tuple[T, list[pytest.MarkDecorator]]]:
    """Each item, with the mark `long` unless it is the first that has one of its keys."""
    seen: set[Hashable] = set()
    for item in items:
        its = set(keys(item))
        yield item, [] if its - seen else [pytest.mark.long(kind)]
        seen |= its


def faults() -> Iterator[tuple[Fault, list[pytest.MarkDecorator]]]:
    """The faults of the zoo. The first of each operator and property is short, and of each operator and kind.

    Of a dear property it is the first of all operators, and LLTM's come first.
    """
    zoo.load()
    return first_of_each(
        sorted(zoo.FAULTS, key=lambda fault: (fault.caught_by in DEAR, fault.operator != _ALL_SAY)),
        lambda fault: [
            (fault.caught_by,) if fault.caught_by in DEAR else (fault.operator, fault.caught_by),
            (fault.operator, "kind", fault.kind),
        ],
    )


def made_by(backend: str) -> str:
    """The backend, or what all that are compiled for a device have in common: each operator of each is a build."""
    found = discovery.backend(backend)
    if not any(isinstance(found.implementation(name), CompiledOperator) for name in discovery.operators()):
        return backend
    return "compiled" if CPU in found.backend.devices else "emulated"


def first_builds(rows: Iterable[tuple[Any, ...]]) -> list[Any]:
    """Tuples whose last is a backend. Each value is short once, and of what is compiled one backend for each device."""
    found = first_of_each(rows, lambda row: [*enumerate(row[:-1]), made_by(row[-1])], AGAIN)
    return [pytest.param(*row, marks=marks) for row, marks in found]


def first_alone(values: Iterable[Any], kind: str = AGAIN, count: int = 1) -> list[Any]:
    """Parameters, or tuples of them, of which the short tier has the first, or the first `count`."""
    parts = [value if isinstance(value, tuple) else (value,) for value in values]
    return [pytest.param(*part, marks=[pytest.mark.long(kind)] if k >= count else []) for k, part in enumerate(parts)]


def each_once(*axes: Sequence[Any]) -> list[Any]:
    """All tuples of one value of each axis; the short tier has as many as the longest axis, with each value in one."""
    longest = max(map(len, axes))
    chosen = [tuple(axis[k % len(axis)] for axis in axes) for k in range(longest)]
    marks = {one: () if one in chosen else (pytest.mark.long(AGAIN),) for one in product(*axes)}
    return [pytest.param(*one, marks=mark) for one, mark in marks.items()]


def dealt() -> Iterator[tuple[tuple[list[Control], str, torch.dtype], list[pytest.MarkDecorator]]]:
    """Controls for each operator and property, those that do not give it up; for a dear property, of LLTM alone.

    The first is judged. Names decide which it is, so that a new control, operator or property moves few of the others.
    The short tier has each property of LLTM, and of the other operators one in three.
    """
    zoo.load()
    operators = dict.fromkeys(control.operator for control in zoo.CONTROLS)
    for name, property in all_properties().items():
        dtype = _dtype(property)
        if dtype is None:
            continue
        for operator in (_ALL_SAY,) if name in DEAR else operators:
            able = [control for control in zoo.controls(operator) if name not in control.gives_up]
            if able:
                first = sorted(able, key=lambda control: zlib.crc32(f"{name} {control.id}".encode()))
                is_short = operator == _ALL_SAY or zlib.crc32(f"{operator} {name}".encode()) % _ONE_IN == 0
                yield (first, name, dtype), [] if is_short else [pytest.mark.long(ZOO)]


def _dtype(property: Property) -> torch.dtype | None:
    """Float32, whose exact values the faults need too, or the last dtype in which it is asked on the CPU."""
    asked = [dtype for dtype in DTYPES if property.is_asked("cpu", str(dtype).removeprefix("torch."))]
    return torch.float32 if torch.float32 in asked else asked[-1] if asked else None
