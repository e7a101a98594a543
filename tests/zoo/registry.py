"""Faults, which the suite must catch, and controls, which it must pass.

A fault is one class or function with one mistake, stated in its docstring, with the property that must catch it and a
pattern that the reason must match, so that it is caught for the right reason. Faults are in
`tests/zoo/faults/OPERATOR/KIND.py`, controls in `tests/zoo/controls/OPERATOR/KIND.py` or `OPERATOR.py`.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import torch

from backends.autocast import by_rule
from harness.discovery import operator
from harness.judging.judge import judge
from harness.judging.subject import USUAL, Examples, Subject
from harness.properties import all_properties
from harness.report.cell import Cell


@dataclass(frozen=True)
class Fault:
    """A wrong implementation. `defects` are numbers of published defects that it represents.

    `examples` is the number of calls that Hypothesis must draw to find it almost surely; None for EXAMPLES.
    """

    name: str
    operator: str
    mistake: str
    kind: str
    function: Callable[..., Any]
    caught_by: str
    says: str
    dtype: torch.dtype
    defects: tuple[int, ...] = ()
    examples: int | None = None

    @property
    def id(self) -> str:
        """`lltm-math-AddsTheBiasTwice`."""
        return f"{self.operator}-{self.kind}-{self.name}"


@dataclass(frozen=True)
class Control:
    """A right implementation that works in another way. `gives_up` are properties that it does not hold.

    `cpu_alone` says why it is wrong on a GPU; empty for one that is right on every device.
    """

    name: str
    operator: str
    way: str
    function: Callable[..., Any]
    gives_up: Mapping[str, str] = field(default_factory=dict)
    cpu_alone: str = ""

    @property
    def id(self) -> str:
        """`lltm-two_products`."""
        return f"{self.operator}-{self.name}"


#: `gives_up` of a control with an autograd.Function in the style of PyTorch 1.
OLD_STYLE = {"functional-transforms": "its autograd.Function takes the context in forward, as older tutorials do"}

#: Calls that Hypothesis draws to find a fault, unless it needs more.
EXAMPLES = 100

FAULTS: list[Fault] = []
CONTROLS: list[Control] = []


def _with_autocast(thing: Any, of: str) -> Any:
    """The thing with the contract's rule for torch.autocast, so that faults of other kinds do not fail there."""
    if not operator(of).autocast:
        return thing
    by = by_rule(operator(of))
    if not inspect.isclass(thing):
        return by(thing)
    thing.__call__ = by(thing.__call__)  # type: ignore[operator]
    return thing


def _callable(thing: Any) -> Callable[..., Any]:
    made: Callable[..., Any] = thing() if inspect.isclass(thing) else thing
    return made


def fault(
    caught_by: str,
    says: str,
    *,
    dtype: torch.dtype = torch.float32,
    defects: tuple[int, ...] = (),
    examples: int | None = None,
) -> Callable[[Any], Any]:
    """Register a class (its instance is the implementation) or a function as a fault; `says` is a pattern."""

    def register(thing: Any) -> Any:
        *_, of, kind = thing.__module__.split(".")
        mistake = inspect.cleandoc(thing.__doc__).splitlines()[0]
        bearing = thing if caught_by == "autocast" else _with_autocast(thing, of)
        made = _callable(bearing)
        FAULTS.append(Fault(thing.__name__, of, mistake, kind, made, caught_by, says, dtype, defects, examples))
        return bearing

    return register


def control(thing: Any = None, *, gives_up: Mapping[str, str] | None = None, cpu_alone: str = "") -> Any:
    """Register a class or a function as a control. `gives_up` says which properties it does not hold, and why.

    `cpu_alone` says why it is wrong on a GPU.
    """
    if thing is None:
        return lambda later: control(later, gives_up=gives_up, cpu_alone=cpu_alone)
    of = thing.__module__.partition(".controls.")[2].partition(".")[0]
    way = inspect.cleandoc(thing.__doc__).splitlines()[0]
    bearing = _with_autocast(thing, of)
    CONTROLS.append(Control(thing.__name__, of, way, _callable(bearing), gives_up or {}, cpu_alone))
    return bearing


@cache
def load() -> None:
    """Import every file of faults and controls, once."""
    for folder in ("faults", "controls"):
        for path in sorted((Path(__file__).parent / folder).rglob("*.py")):
            parts = path.relative_to(Path(__file__).parent).with_suffix("").parts
            importlib.import_module(".".join(("tests.zoo", *parts)))


def faults(of: str) -> list[Fault]:
    """The faults of an operator."""
    load()
    return [fault for fault in FAULTS if fault.operator == of]


def controls(of: str) -> list[Control]:
    """The controls of an operator."""
    load()
    return [control for control in CONTROLS if control.operator == of]


def file_of(function: Callable[..., Any]) -> tuple[Path, ...]:
    """The file of a fault or control: of the function, or of the class that the instance is of."""
    thing = inspect.unwrap(function) if inspect.isfunction(function) else type(function)
    return (Path(inspect.getfile(thing)),)


def judged(
    function: Callable[..., Any],
    property: str,
    dtype: torch.dtype,
    of: str = "lltm",
    examples: int | None = None,
) -> Cell:
    """The cell of one property for a candidate on the CPU; `of` is the operator, `examples` how many calls to draw."""
    name = getattr(function, "__name__", "candidate")
    drawn = Examples(examples or USUAL.count)
    subject = Subject(operator(of), name, "cpu", dtype, function, examples=drawn, files=file_of(function))
    return judge(subject, all_properties()[property])
