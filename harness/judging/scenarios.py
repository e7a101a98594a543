"""The scenarios that properties share, made from an operator's named cases and value families, smallest first."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from itertools import chain, combinations
from math import prod

from harness.judging.covering import Model, rows_of
from harness.judging.scenario import CHANGING, COTANGENTS, LAYOUTS, REPEATED, Scenario, kinds_of, layouts_of
from spec.contract import Case, Operator, TensorArg

SEEDS = 3
#: Layouts that change no value, beside the ordinary one.
_KEEPING = tuple(layout for layout in LAYOUTS[1:] if layout not in CHANGING)
#: Rows of a call that shall have more than the fast path of a kernel needs: no multiple of a block, but of 7.
ROWS = 49
#: What the other sizes are then, and the most elements of a tensor.
WIDE, VOLUME = 43, 2**17
#: Subsets of gradients that are asked beside the values of each input.
FEW_SUBSETS = 32
#: Calls beside values that have something in common, up to which all are made; each takes a millisecond or two.
FEW_CALLS = 600


def elements(operator: Operator, sizes: Mapping[str, int]) -> tuple[int, int]:
    """Those of all inputs and outputs, and of the largest tensor in between that the contract lists as saved."""
    outside = sum(prod(arg.shape_for(sizes)) for arg in (*operator.inputs, *operator.outputs))
    return outside, max((prod(arg.shape_for(sizes)) for arg in operator.saved), default=0)


def tagged(operator: Operator, tag: str) -> tuple[Case, ...]:
    """The operator's cases with that tag, smallest first."""

    def of_inputs(case: Case) -> int:
        return sum(prod(arg.shape_for(case.sizes)) for arg in operator.inputs)

    return tuple(sorted((case for case in operator.cases if tag in case.tags), key=of_inputs))


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
    """Each input and each cotangent in each layout, one at a time; then all together; then every two layouts.

    Those have the same expected results, since no layout among them changes the values. Then layouts are beside
    cotangents that repeat numbers.
    """
    case = representative(operator)
    outputs = [arg.name for arg in operator.real_outputs]
    layouts = [layout for layout in LAYOUTS if layout != "contiguous"]
    kinds = {arg.name: [k for k in kinds_of(arg) if k not in ("normal", "missing")] for arg in operator.real_outputs}
    possible = {arg.name: layouts_of(arg) for arg in operator.inputs}
    found = [
        Scenario.of(case, layouts=((name, layout),))
        for name, own in possible.items()
        for layout in layouts
        if layout in own
    ]
    found += [Scenario.of(case, cotangents=((name, kind),)) for name in outputs for kind in kinds[name]]
    found += [Scenario.of(case, cotangents=tuple((name, "ones") for name in outputs))]
    for layout in layouts:
        # Some kernels take one path if everything is aligned and another if anything is not.
        kind = layout if layout in COTANGENTS else "ones"
        everything = tuple((name, layout) for name, own in possible.items() if layout in own)
        found += [Scenario.of(case, layouts=everything, cotangents=tuple((name, kind) for name in outputs))]
    found += [Scenario.of(case, layouts=pairs) for pairs in _every_two_layouts(tuple(operator.inputs))]
    for kind in dict.fromkeys(kind for own in kinds.values() for kind in own if kind in REPEATED):
        repeated = tuple((name, kind) for name in outputs)
        alone = [((name, "expanded"),) for name, own in possible.items() if "expanded" in own]
        together = [tuple((name, layout) for name, own in possible.items() if layout in own) for layout in _KEEPING]
        found += [Scenario.of(case, layouts=each, cotangents=repeated) for each in (*alone, *together)]
    return found


@lru_cache(maxsize=64)
def _every_two_layouts(inputs: tuple[TensorArg, ...]) -> tuple[tuple[tuple[str, str], ...], ...]:
    """Layouts in which every two that keep the values occur together; and each input expanded beside each of them."""
    keeping = {arg.name: tuple(each for each in layouts_of(arg) if each not in CHANGING) for arg in inputs}
    if len(keeping) < 2:
        return ()
    found = rows_of([Model(keeping, lambda chosen: True)])  # noqa: ARG005
    for arg in inputs:
        if "expanded" in layouts_of(arg) and arg.shape:
            found += [{name: "expanded" if name == arg.name else layout for name in keeping} for layout in _KEEPING]
    return tuple(tuple((name, layout) for name, layout in row.items() if layout != LAYOUTS[0]) for row in found)


def of_subsets(operator: Operator) -> list[Scenario]:
    """Every subset of inputs that require grad, with every non-empty subset of outputs in the loss.

    Every proper subset with all inputs in each layout that keeps the values. And at larger sizes every proper subset
    with each kind of cotangent that repeats numbers: a backward may have a shorter way for these.
    """
    case = representative(operator)
    inputs = [arg.name for arg in operator.inputs if arg.differentiable]
    outputs = [arg.name for arg in operator.real_outputs]
    found = []
    for unused in chain.from_iterable(combinations(outputs, n) for n in range(len(outputs))):
        missing = tuple((name, "missing") for name in unused)
        for wanted in chain.from_iterable(combinations(inputs, n) for n in range(len(inputs) + 1)):
            found.append(Scenario.of(case, cotangents=missing, wanted=wanted))
    proper = proper_subsets(operator)
    for layout in _KEEPING:
        everything = tuple((arg.name, layout) for arg in operator.inputs if layout in layouts_of(arg))
        found += [Scenario.of(case, layouts=everything, wanted=wanted) for wanted in proper]
    many = _many(operator, case)
    for wanted in proper:
        for kind in REPEATED:
            if not any(kind in kinds_of(arg) for arg in operator.real_outputs):
                continue
            repeated = tuple((name, kind) for name in outputs)
            found += [Scenario(sizes, "rows", cotangents=repeated, wanted=wanted) for sizes in many]
    return found


def proper_subsets(operator: Operator) -> list[tuple[str, ...]]:
    """Every subset of the inputs that may require grad, but none and all of them."""
    names = [arg.name for arg in operator.inputs if arg.differentiable]
    return list(chain.from_iterable(combinations(names, n) for n in range(1, len(names))))


def beside_values(operator: Operator) -> list[Scenario]:
    """Every proper subset while the values of one input have something in common.

    Of few subsets each is beside each input and kind, of more beside each input, whose kinds come in turn, and of many
    beside one input.
    """
    case, proper = representative(operator), proper_subsets(operator)
    kinds = [(arg.name, arg.commonly()) for arg in operator.inputs if arg.commonly()]
    if len(proper) * sum(len(own) for _, own in kinds) <= FEW_CALLS:
        pairs = [(name, kind) for name, own in kinds for kind in own]
        return [Scenario.of(case, values=f"{kind} of {name}", wanted=each) for name, kind in pairs for each in proper]
    few, found = len(proper) <= FEW_SUBSETS, []
    for number, wanted in enumerate(proper):
        for place, (name, own) in enumerate(kinds):
            if few or place == number % len(kinds):
                kind = own[((number if few else number // len(kinds)) + place) % len(own)]
                found.append(Scenario.of(case, values=f"{kind} of {name}", wanted=wanted))
    return sorted(found, key=lambda scenario: scenario.values)  # calls of the same values have one reference


def _many(operator: Operator, case: Case) -> list[tuple[tuple[str, int], ...]]:
    """Sizes that are all larger than the fast path of a kernel needs; one after the other if all are too large."""
    large = {symbol: ROWS if symbol == "batch" else WIDE for symbol in case.sizes if symbol not in operator.sequential}
    together = {**case.sizes, **large}
    if max(prod(arg.shape_for(together)) for arg in operator.inputs) <= VOLUME:
        return [tuple(together.items())]
    return [tuple({**case.sizes, symbol: size}.items()) for symbol, size in large.items()]
