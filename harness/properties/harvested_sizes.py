"""Outputs and gradients are right around every integer of the implementation's source: see `judging.constants`.

For an integer c these sizes are asked of each symbol, the others being small: c + 1, 2c + 1, c and c - 1. Sizes beyond
a multiple come first, because a tail is what is forgotten. The figures say what was left out.
"""

from __future__ import annotations

from itertools import islice
from math import prod
from typing import Any

from harness.errors import NotApplicable
from harness.judging.constants import constants_of
from harness.judging.property import Property
from harness.judging.scenario import Scenario
from harness.judging.scenarios import representative
from harness.judging.subject import Subject
from harness.judging.tally import Tally
from harness.report.levels import VALUES
from spec.contract import Operator

#: Calls that are made at most.
CALLS = 80
#: Elements of all tensors of a call at most, and product of its sizes: an oracle then takes up to a fifth of a second.
VOLUME = 2**17
#: Steps that the reference loops over at most.
STEPS = 64


def check(subject: Subject) -> dict[str, Any]:
    """Sizes around each constant, symbol by symbol."""
    if subject.files is None:
        raise NotApplicable("its source is not known: a function of a notebook, or one that is made at run time")
    constants = constants_of(subject.files)
    if not constants:
        raise NotApplicable("there is no integer in its source that may be a size")
    asked = _scenarios(subject.operator, constants)
    tally = Tally(subject)
    for scenario in islice(asked, CALLS):
        tally.run(scenario)
    left_out = [scenario.name for scenario in islice(asked, CALLS, None)]
    figures = {**tally.figures(), "constants": constants}
    return {**figures, "left_out": left_out} if left_out else figures


def _scenarios(operator: Operator, constants: list[int]) -> list[Scenario]:
    """The calls, the most telling first."""
    around = ((1, 1), (2, 1), (1, 0), (1, -1))
    sizes = dict.fromkeys(factor * c + more for factor, more in around for c in constants)
    known = {(symbol, size) for case in operator.cases if "size" in case.tags for symbol, size in case.sizes.items()}
    found = []
    for size in sizes:
        for symbol in operator.symbols():
            if (symbol, size) in known or (symbol in operator.sequential and size > STEPS):
                continue
            every = {**representative(operator).sizes, symbol: size}
            if _volume(operator, every) <= VOLUME:
                found.append(Scenario(tuple(every.items()), name=f"{symbol}-{size}", seed=size))
    return found


def _volume(operator: Operator, sizes: dict[str, int]) -> int:
    elements = sum(prod(arg.shape_for(sizes)) for arg in (*operator.inputs, *operator.outputs))
    return max(elements, prod(sizes.values()))


PROPERTY = Property(
    "harvested-sizes",
    "right at sizes around the integers in its source",
    check,
    level=VALUES,
    outside=True,
    dtypes=("float32", "bfloat16"),
    why_only="the source is the same in every dtype; half types may have kernels of their own",
)
