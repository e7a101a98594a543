"""Calls in which every two choices occur together: a covering array over the ways to make a call.

The axes are the size of each symbol, the layout of each input, the kind of each cotangent, the family of values,
whether each input requires grad, and the mode of a call without grad. Many faults need two of them at once: more rows
than a block and a transposed tensor, an expanded cotangent and one gradient alone. All combinations are too many; all
pairs are some 100 calls. The form of an operator is an axis too: two choices that occur together in one form need not
occur together in another. But a form may have a path of its own for two choices. So further calls, which are compared
with the reference alone (`harness.judging.near`), complete an array for each form.

Some choices hide others: where the size of a dimension is 1, its stride does not matter, and where a gradient is not
wanted, no cotangent does. So every two choices that hide nothing occur together in a call in which nothing is hidden.

Source of the method: D. Kuhn, R. Kacker, Y. Lei, "Practical combinatorial testing", NIST SP 800-142 (2010).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Any

import torch

from harness.judging.by_identity import ByIdentity
from harness.judging.covering import Choice, Model, Row, coverage, rows_of
from harness.judging.ratios import in_ratios, in_ratios_of_lengths
from harness.judging.scenario import COTANGENTS, LAYOUTS, Scenario, kinds_of, layouts_of
from harness.judging.scenarios import elements
from spec.contract import NORMAL, ONE_SIGN, Operator

#: Sizes of a symbol: one, no multiple of a vector, a vector, and a tail beyond a vector of 32.
SIZES = (1, 3, 8, 33)
#: One more size, the first that the volume allows; the very first is for rows alone. They are prime, so that they are
#: no multiple of any block.
LARGE = (4099, 1031, 257, 67)
#: Further calls have sizes in ratios, which are multiples of `_BASE`. Ordinary calls have `_OTHER`.
_BASE, _OTHER = 5, 7
#: Sizes over which the reference loops.
STEPS = (1, 2, 5)
#: Kinds of cotangent that `layouts` asks alone; of the others all pairs occur.
_ALONE = ("transposed", "offset")
#: Most elements of all inputs and outputs of a call, and half of the largest product of all its sizes, which bounds
#: what lies in between. So an oracle takes some hundredths of a second.
VOLUME = 2**15

NO_GRAD, INFERENCE = WITHOUT_GRAD = ("no_grad", "inference_mode")

#: How the names of axes begin of which not all choices can occur together.
_SIZE, _COTANGENT = _BOUNDED = ("size of ", "cotangent of ")


@dataclass(frozen=True)
class Combination:
    """One call in one form of the operator, and the mode in which it is made once more without grad."""

    form: str
    scenario: Scenario
    without_grad: str


@dataclass(frozen=True)
class Combinations:
    """A covering array: its calls, and how many pairs and triples of choices can occur, and do occur.

    `further` are calls of operators with several forms: with them, every two choices of a form occur together in it.
    """

    calls: tuple[Combination, ...]
    further: tuple[Combination, ...]
    pairs: int
    pairs_covered: int
    triples: int
    triples_covered: int


def combinations_of(operator: Operator) -> Combinations:
    """The covering array of an operator in all its forms: the same each time."""
    return _computed(ByIdentity(operator))


@lru_cache(maxsize=64)
def _computed(key: ByIdentity) -> Combinations:
    forms = {form.form: form for form in key.operator.every_form()}
    models = [_model(form) for form in forms.values()]
    rows = rows_of(models, rows_of([_model(form, clear=True) for form in forms.values()]))
    calls = [_combination(forms[row["form"]], row, "pairs", number) for number, row in enumerate(rows, start=1)]
    ordinary = [call for form in forms.values() for call in _ordinary(form)]
    counts = [count for strength in (2, 3) for count in coverage(models, rows, strength)]
    ratios = [call for form, layouts in _of_other_shapes(tuple(forms.values())) for call in _ratios(form, layouts)]
    further = tuple(call for form in forms.values() for call in _of_one_form(form, rows))
    return Combinations((*calls, *ordinary, *ratios), further, *counts)


def _of_one_form(form: Operator, rows: Sequence[Row]) -> Iterator[Combination]:
    """Calls of this form with every two choices that the rows have in no call of it."""
    there = [row for row in rows if row["form"] == form.form]
    clear = [row for row in there if not any(_hides(axis, value) for axis, value in row.items())]
    also = rows_of([_model(form, clear=True)], clear)[len(clear) :]
    missing = [*also, *rows_of([_model(form)], [*there, *also])[len(there) + len(also) :]]
    for number, row in enumerate(missing, start=1):
        yield _combination(form, row, f"pairs-of-{form.form}", number)


def _model(form: Operator, clear: bool = False) -> Model:
    """The axes of one form, in the order of all forms, and the form itself as one more; `clear`: what hides nothing."""
    fits: dict[tuple[Choice, ...], bool] = {}
    axes = axes_of(form)
    if clear:
        axes = {name: tuple(value for value in axes[name] if not _hides(name, value)) or axes[name] for name in axes}
    least = {name.removeprefix(_SIZE): min(axes[name]) for name in axes if name.startswith(_SIZE)}
    most = most_elements(form)

    def possible(chosen: Mapping[str, Any]) -> bool:
        sizes = tuple(choice for choice in chosen.items() if choice[0].startswith(_SIZE))
        kinds = [kind for axis, kind in chosen.items() if axis.startswith(_COTANGENT)]
        if len(sizes) + len(kinds) < 2:
            return True
        if sizes not in fits:
            fits[sizes] = _volume(form, {axis.removeprefix(_SIZE): size for axis, size in sizes}, least) <= most
        is_nothing = len(kinds) == len(form.real_outputs) and all(kind == "missing" for kind in kinds)
        return fits[sizes] and not (kinds and is_nothing)

    free = ("form", *(axis for axis in axes if not axis.startswith(_BOUNDED)))
    return Model({"form": (form.form,), **dict(sorted(axes.items()))}, possible, free)


def _hides(axis: str, value: Any) -> bool:
    """Whether a fault in another choice may not show beside this one; the largest size leaves the others no room."""
    if axis.startswith(_SIZE):
        return value == 1 or value in LARGE
    if axis.startswith(_COTANGENT):
        return value in ("zero", "missing")
    return value not in (NORMAL, *ONE_SIGN) if axis == "values" else value is False


def ordinary_sizes(operator: Operator) -> dict[str, int]:
    """Each size the same, larger than most of the smallest case."""
    return dict.fromkeys(operator.symbols(), _OTHER)


def _ordinary(operator: Operator) -> Iterator[Combination]:
    """Nothing unusual, so that each tensor has evidence: many of the other calls have gradients of almost zero.

    Then each size is 1 alone: what squeezes or broadcasts such a dimension may be wrong beside larger ones, and only
    where rows differ.
    """
    usual = ordinary_sizes(operator)
    calls = [("ordinary", usual), *((f"one-{symbol}", {**usual, symbol: 1}) for symbol in operator.symbols())]
    for seed, (name, sizes) in enumerate(calls):
        yield Combination(operator.form, Scenario(tuple(sizes.items()), name=name, seed=seed), WITHOUT_GRAD[seed % 2])


def _of_other_shapes(forms: tuple[Operator, ...]) -> Iterator[tuple[Operator, tuple[str, ...]]]:
    """The forms with matrices of real numbers of which no earlier form has the shape, and the layouts to ask."""
    seen: set[tuple[str, ...]] = set()
    for form in forms:
        matrices = {arg.shape for arg in form.inputs if arg.is_floating and len(arg.shape) > 1}
        if not seen or not matrices <= seen:
            yield form, LAYOUTS[: 1 if seen else 2]
        seen |= matrices


def _ratios(operator: Operator, asked: tuple[str, ...]) -> Iterator[Combination]:
    """Every two sizes equal or multiples, all inputs in each of the layouts: one must not be guessed from sizes."""
    most = most_elements(operator)
    found = in_ratios(operator.symbols(), _BASE, lambda sizes: _volume(operator, sizes) <= most)
    for number, sizes in enumerate(found, start=1):
        for layout, mode in zip(asked, WITHOUT_GRAD, strict=False):
            flat = layout == LAYOUTS[0]
            layouts = () if flat else tuple((arg.name, layout) for arg in operator.inputs if len(arg.shape) > 1)
            scenario = Scenario(
                tuple((symbol, sizes[symbol]) for symbol in operator.symbols()),
                name=f"ratios-{number}",
                seed=number,
                layouts=layouts,
            )
            yield Combination(operator.form, scenario, mode)


def of_lengths(operator: Operator) -> Iterator[Scenario]:
    """Every length of some times a size equal to another length, or a small multiple."""
    usual, most = ordinary_sizes(operator), most_elements(operator)
    found = in_ratios_of_lengths(operator, _BASE, lambda sizes: _volume(operator, {**usual, **sizes}) <= most)
    for number, sizes in enumerate(found, start=1):
        yield Scenario(tuple({**usual, **sizes}.items()), name=f"ratios-of-lengths-{number}", seed=number)


def axes_of(operator: Operator) -> dict[str, tuple[Any, ...]]:
    """The values of each axis, by its name. An axis of one value is left out of no pair, so it stays."""
    axes: dict[str, tuple[Any, ...]] = {}
    for symbol in operator.symbols():
        axes[f"size of {symbol}"] = STEPS if symbol in operator.sequential else (*SIZES, *_large(operator, symbol))
    for arg in operator.inputs:
        dims = len(arg.shape)
        axes[f"layout of {arg.name}"] = tuple(
            layout for layout in layouts_of(arg) if layout == LAYOUTS[0] or dims >= (2 if layout == "transposed" else 1)
        )
    for arg in operator.real_outputs:
        kinds = (kind for kind in kinds_of(arg) if kind not in _ALONE)
        kinds = (kind for kind in kinds if kind != "missing" or len(operator.real_outputs) > 1)
        axes[f"cotangent of {arg.name}"] = tuple(kinds)
    axes["values"] = (NORMAL, *(family.name for family in operator.families), *ONE_SIGN)
    for arg in operator.inputs:
        if arg.differentiable:
            axes[f"gradient of {arg.name}"] = (True, False)
    axes["without grad"] = WITHOUT_GRAD
    return axes


def _large(operator: Operator, symbol: str) -> tuple[int, ...]:
    """The largest size of the symbol beside small ones; none where fixed lengths of the contract leave no room."""
    sizes, most = LARGE if symbol == "batch" else LARGE[1:], most_elements(operator)
    return tuple(size for size in sizes if _volume(operator, {symbol: size}) <= most)[:1]


def most_elements(operator: Operator) -> int:
    """VOLUME; more where lengths that are fixed in the contract leave no room for the ordinary sizes of the others."""
    return max(VOLUME, max(SIZES) * _volume(operator, {}))


def _volume(operator: Operator, sizes: Mapping[str, int], least: Mapping[str, int] | None = None) -> int:
    """The elements of a call as `VOLUME` limits them; a size that is not chosen yet is the `least`, or 1.

    What lies in between is bounded by the product of all sizes. Where it is not, as where a size occurs twice in it,
    the tensors that the contract lists as saved show it; an eighth of them counts.
    """
    every = {symbol: sizes.get(symbol, (least or {}).get(symbol, 1)) for symbol in operator.symbols()}
    outside, between = elements(operator, every)
    return max(outside, prod(every.values()) // 2, between // 8)


def _combination(operator: Operator, row: Row, name: str, number: int) -> Combination:
    differentiable = [arg.name for arg in operator.inputs if arg.differentiable]
    wanted = tuple(name for name in differentiable if row[f"gradient of {name}"])
    layouts = ((arg.name, row[f"layout of {arg.name}"]) for arg in operator.inputs)
    kinds = ((arg.name, row[f"cotangent of {arg.name}"]) for arg in operator.real_outputs)
    scenario = Scenario(
        sizes=tuple((symbol, row[f"size of {symbol}"]) for symbol in operator.symbols()),
        name=f"{name}-{number}",
        seed=number,
        values=row["values"],
        layouts=tuple((name, layout) for name, layout in layouts if layout != LAYOUTS[0]),
        cotangents=tuple((name, kind) for name, kind in kinds if kind != COTANGENTS[0]),
        wanted=None if len(wanted) == len(differentiable) else wanted,
    )
    return Combination(operator.form, scenario, row["without grad"])


def without_grad(mode: str) -> AbstractContextManager[None]:
    """The mode of that name: `no_grad` or `inference_mode`."""
    return torch.inference_mode() if mode == INFERENCE else torch.no_grad()
