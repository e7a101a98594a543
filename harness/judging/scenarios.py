"""The scenarios that properties share, made from an operator's named cases and value families, smallest first."""

from __future__ import annotations

from itertools import chain, combinations
from math import prod

from harness.judging.scenario import COTANGENTS, LAYOUTS, Scenario, layouts_of
from spec.contract import Case, Operator

SEEDS = 3
#: Rows of a call that shall have more than the fast path of a kernel needs: no multiple of a block, but of 7.
ROWS = 49


def tagged(operator: Operator, tag: str) -> tuple[Case, ...]:
    """The operator's cases with that tag, smallest first."""

    def elements(case: Case) -> int:
        return sum(prod(arg.shape_for(case.sizes)) for arg in operator.inputs)

    return tuple(sorted((case for case in operator.cases if tag in case.tags), key=elements))


def representative(operator: Operator) -> Case:
    """The case that most properties use: the small one with the most distinct sizes, so that no axis is confused."""
    return max(tagged(operator, "small"), key=lambda case: (len(set(case.sizes.values())), min(case.sizes.values())))


def smallest(operator: Operator) -> Scenario:
    """One ordinary scenario of the representative case."""
    return Scenario.of(representative(operator))


def ordinary(operator: Operator) -> list[Scenario]:
    """Ordinary values: the small cases once, the representative one with several seeds, the tutorial's sizes."""
    found = [Scenario.of(representative(operator), seed=seed) for seed in range(SEEDS)]
    found += [Scenario.of(case) for case in tagged(operator, "small") if case != representative(operator)]
    found += [Scenario.of(case) for case in tagged(operator, "benchmark")[:1]]
    return found


def at_edges(operator: Operator) -> list[Scenario]:
    """Every value family, in a batch large enough that each of its kinds of row occurs."""
    sizes = dict(representative(operator).sizes)
    if "batch" in sizes:
        sizes["batch"] = max(sizes["batch"], 12)
    return [Scenario(tuple(sizes.items()), name="edges", values=family.name) for family in operator.families]


def of_sizes(operator: Operator) -> list[Scenario]:
    """Every size that the contract names."""
    return [Scenario.of(case) for case in tagged(operator, "size")]


def of_layouts(operator: Operator) -> list[Scenario]:
    """Each input and each cotangent in each layout, one at a time; then all together."""
    case = representative(operator)
    outputs = [arg.name for arg in operator.real_outputs]
    layouts = [layout for layout in LAYOUTS if layout != "contiguous"]
    kinds = [kind for kind in COTANGENTS if kind not in ("normal", "missing")]
    possible = {arg.name: layouts_of(arg) for arg in operator.inputs}
    found = [
        Scenario.of(case, layouts=((name, layout),))
        for name, own in possible.items()
        for layout in layouts
        if layout in own
    ]
    found += [Scenario.of(case, cotangents=((name, kind),)) for name in outputs for kind in kinds]
    found += [Scenario.of(case, cotangents=tuple((name, "ones") for name in outputs))]
    for layout in layouts:
        # Some kernels take one path if everything is aligned and another if anything is not.
        kind = layout if layout in COTANGENTS else "ones"
        everything = tuple((name, layout) for name, own in possible.items() if layout in own)
        found += [Scenario.of(case, layouts=everything, cotangents=tuple((name, kind) for name in outputs))]
    return found


def of_subsets(operator: Operator) -> list[Scenario]:
    """Every subset of inputs that require grad, with every non-empty subset of outputs in the loss.

    And of ROWS rows every proper subset with each kind of cotangent that repeats numbers: a backward may have a shorter
    way for these.
    """
    case = representative(operator)
    inputs = [arg.name for arg in operator.inputs if arg.differentiable]
    outputs = [arg.name for arg in operator.real_outputs]
    found = []
    for unused in chain.from_iterable(combinations(outputs, n) for n in range(len(outputs))):
        missing = tuple((name, "missing") for name in unused)
        for wanted in chain.from_iterable(combinations(inputs, n) for n in range(len(inputs) + 1)):
            found.append(Scenario.of(case, cotangents=missing, wanted=wanted))
    rows = tuple((symbol, ROWS if symbol == "batch" else size) for symbol, size in case.sizes.items())
    for wanted in chain.from_iterable(combinations(inputs, n) for n in range(1, len(inputs))):
        for kind in ("scaled", "rows", "columns"):
            found.append(Scenario(rows, "rows", cotangents=tuple((name, kind) for name in outputs), wanted=wanted))
    return found
