"""Hypothesis draws whole calls: sizes, values, layouts, cotangents, and which gradients are wanted.

One integer seeds all values of a call, through a generator of its own. So a drawn call is a small value that hypothesis
can shrink along every axis and that can be printed. Torch's global generator is never used.
"""

from __future__ import annotations

from math import prod

from hypothesis import strategies as st

from harness.judging.scenario import Scenario, kinds_of, layouts_of
from spec.contract import Operator, TensorArg

#: Small sizes, and the sizes around which vectors, warps and blocks end. Hypothesis shrinks to the first.
_SIZES = (*range(1, 10), *range(1, 10), 15, 16, 17, 31, 32, 33, 63, 64, 65)
#: Sizes over which the reference loops. A few steps show how two steps affect each other, and cost little.
_SEQUENTIAL = (*range(1, 6), 8)
#: Largest product of all sizes of a call: three sizes can be the largest, four cannot.
_VOLUME = 65**3


def _layouts(arg: TensorArg) -> tuple[str, ...]:
    """Half of them contiguous: if everything were unusual at once, one kernel path could hide another."""
    own = layouts_of(arg)
    return own[:1] * (len(own) - 1) + own[1:]


@st.composite
def scenarios(draw: st.DrawFn, operator: Operator) -> Scenario:
    """A call of `operator`. It shrinks to what is ordinary."""
    # 0 is drawn only if the contract names a case that has it.
    empty = {symbol for case in operator.cases for symbol, size in case.sizes.items() if size == 0}
    choices = {
        symbol: (*(_SEQUENTIAL if symbol in operator.sequential else _SIZES), *((0,) if symbol in empty else ()))
        for symbol in operator.symbols()
    }
    drawn: dict[str, int] = {}
    for symbol, sizes in choices.items():
        room = _VOLUME // max(prod(drawn.values()), 1)
        drawn[symbol] = draw(st.sampled_from([size for size in sizes if size <= room]), label=symbol)
    drawn_sizes = tuple(drawn.items())
    families = ("normal", *(family.name for family in operator.families))
    differentiable = [arg.name for arg in operator.inputs if arg.differentiable]
    layouts = {arg.name: draw(st.sampled_from(_layouts(arg)), label=f"layout of {arg.name}") for arg in operator.inputs}
    kinds = {
        arg.name: draw(st.sampled_from(kinds_of(arg)), label=f"cotangent of {arg.name}")
        for arg in operator.real_outputs
    }
    some = st.sets(st.sampled_from(differentiable)) if differentiable else st.just(set[str]())
    left_out = draw(some, label="no gradient of")
    return Scenario(
        sizes=drawn_sizes,
        seed=draw(st.integers(0, 2**31 - 1), label="seed"),
        values=draw(st.sampled_from(families), label="values"),
        layouts=tuple((name, layout) for name, layout in layouts.items() if layout != "contiguous"),
        cotangents=tuple((name, kind) for name, kind in kinds.items() if kind != "normal"),
        wanted=tuple(name for name in differentiable if name not in left_out) if left_out else None,
    )
