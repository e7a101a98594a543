"""Hypothesis draws whole calls: sizes, values, layouts, cotangents, and which gradients are wanted.

One integer seeds all values of a call, through a generator of its own, so a drawn call is a small value that shrinks
along every axis and can be printed. Torch's global generator is never used.
"""

from __future__ import annotations

from math import prod

from hypothesis import strategies as st

from harness.judging.scenario import COTANGENTS, LAYOUTS, Scenario
from spec.contract import Operator

#: Small sizes, and the widths around which vectors, warps and blocks end. Shrinks to the first.
_SIZES = (*range(1, 10), *range(1, 10), 15, 16, 17, 31, 32, 33, 63, 64, 65)
#: Sizes that the reference loops over: a few steps show what two steps do to each other, and cost little.
_SEQUENTIAL = (*range(1, 6), 8)
#: The product of all sizes of a call, at most: three of the largest, and less of four.
_VOLUME = 65**3
#: Half of all tensors lie contiguously: where everything is odd at once, one kernel path hides another.
_LAYOUTS = (LAYOUTS[0],) * (len(LAYOUTS) - 1) + LAYOUTS[1:]


@st.composite
def scenarios(draw: st.DrawFn, operator: Operator) -> Scenario:
    """A call of `operator`; what is ordinary is what it shrinks to."""
    # 0 is drawn where the contract names a case that has it.
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
    inputs = [arg.name for arg in operator.inputs]
    outputs = [arg.name for arg in operator.outputs]
    differentiable = [arg.name for arg in operator.inputs if arg.differentiable]
    layouts = {name: draw(st.sampled_from(_LAYOUTS), label=f"layout of {name}") for name in inputs}
    kinds = {name: draw(st.sampled_from(COTANGENTS), label=f"cotangent of {name}") for name in outputs}
    left_out = draw(st.sets(st.sampled_from(differentiable)), label="no gradient of")
    return Scenario(
        sizes=drawn_sizes,
        seed=draw(st.integers(0, 2**31 - 1), label="seed"),
        values=draw(st.sampled_from(families), label="values"),
        layouts=tuple((name, layout) for name, layout in layouts.items() if layout != "contiguous"),
        cotangents=tuple((name, kind) for name, kind in kinds.items() if kind != "normal"),
        wanted=tuple(name for name in differentiable if name not in left_out) if left_out else None,
    )
