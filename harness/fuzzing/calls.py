"""Calls with spoilt arguments, drawn by hypothesis. Each is a small value that can be printed and made again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

from hypothesis import strategies as st
from torch import Tensor

from harness.fuzzing.spoiling import SPOILINGS, spoil
from harness.judging.scenario import Scenario, realise
from harness.judging.subject import Subject
from spec.contract import Operator

#: Sizes of the right call that is spoilt. They are small, because a wrong size must be near a right one to get far.
_SIZES = (2, 3, 4, 5, 8, 17, 33, 1)
_STEPS = (2, 3, 1)
_NUMBERS = 14
#: So many variants of each way are called before any is drawn: a storage can be too small in three ways.
_VARIANTS = 3


@dataclass(frozen=True)
class HostileCall:
    """A right call and the changes to it: `spoilt` are (argument, kind, number), in the order of the arguments.

    `arguments` is how many arguments are passed, fewer or more than the right number; None for the right number.
    """

    sizes: tuple[tuple[str, int], ...]
    spoilt: tuple[tuple[str, str, int], ...]
    seed: int = 0
    grad: bool = False
    arguments: int | None = None

    @property
    def scenario(self) -> Scenario:
        """The right call."""
        return Scenario(sizes=self.sizes, seed=self.seed)

    def tensors(self, subject: Subject) -> tuple[Tensor, ...]:
        """The arguments of the right call."""
        call = realise(subject.operator, self.scenario, subject.dtype, subject.torch_device)
        return tuple(tensor.requires_grad_(self.grad) for tensor in call.inputs)

    def values(self, subject: Subject) -> list[Any]:
        """The arguments that are passed. Raises Impossible."""
        values: list[Any] = list(self.tensors(subject))
        names = [arg.name for arg in subject.operator.inputs]
        for name, kind, number in self.spoilt:
            values[names.index(name)] = spoil(values[names.index(name)].detach(), kind, number)
        if self.arguments is not None:
            values = (values + values[:1] * self.arguments)[: self.arguments]
        return values

    def describe(self, operator: Operator) -> str:
        """`lltm(batch=2, ...; old_h sparse, variant 1)`."""
        parts = [", ".join(f"{symbol}={size}" for symbol, size in self.sizes)]
        parts += [f"{name} {kind}, variant {number}" for name, kind, number in self.spoilt]
        parts += [f"{self.arguments} arguments"] if self.arguments is not None else []
        parts += ["requiring grad"] if self.grad else []
        return f"{operator.title}({'; '.join(parts)})"


def one_at_a_time(operator: Operator) -> Iterator[HostileCall]:
    """Calls in which one argument is spoilt, each argument in each way; they do not depend on what is drawn.

    What is refused comes first: it takes less time than what is answered, and judged.
    """
    sizes = tuple((symbol, (_STEPS if symbol in operator.sequential else _SIZES)[0]) for symbol in operator.symbols())
    for kind, arg, number in product(reversed(SPOILINGS), operator.inputs, range(_VARIANTS)):
        yield HostileCall(sizes=sizes, spoilt=((arg.name, kind, number),))


@st.composite
def hostile_calls(draw: st.DrawFn, operator: Operator, larger: tuple[int, ...] = ()) -> HostileCall:
    """A call of `operator`, usually with one spoilt argument, since a second one may hide the effect of the first.

    In half of the calls one size is of `larger`, if there are any: a kernel for larger sizes is reached so, and a call
    does not become large in all directions.
    """
    names = [arg.name for arg in operator.inputs]
    choices = {symbol: _STEPS if symbol in operator.sequential else _SIZES for symbol in operator.symbols()}
    sizes = {symbol: draw(st.sampled_from(choice), label=symbol) for symbol, choice in choices.items()}
    symbols = [symbol for symbol in sizes if symbol not in operator.sequential]
    if larger and symbols and draw(st.booleans(), label="larger"):
        sizes[draw(st.sampled_from(symbols))] = draw(st.sampled_from(larger))
    chosen = draw(st.lists(st.sampled_from(names), min_size=0, max_size=3, unique=True).map(sorted), label="spoilt")
    spoilt = tuple(
        (name, draw(st.sampled_from(sorted(SPOILINGS))), draw(st.integers(0, _NUMBERS - 1)))
        for name in sorted(chosen[: draw(st.sampled_from((1, 1, 2, 3)))], key=names.index)
    )
    count = draw(st.none() | st.integers(0, len(names) + 2)) if not spoilt else None
    return HostileCall(
        sizes=tuple(sizes.items()),
        spoilt=spoilt,
        seed=draw(st.integers(0, 2**16)),
        grad=draw(st.booleans()),
        arguments=None if count == len(names) else count,
    )
