"""What is found to hold in a reference: rows that do not depend on each other, tensors of any rank."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace

import torch
from torch import Tensor

from spec.contract import Draw, Sizes, TensorArg

Args = tuple[TensorArg, ...]
Forward = Callable[..., tuple[Tensor, ...]]
#: How far rows may differ from the same rows alone, in float64: sums in another order.
_AGREE = 1e-10
#: Draws with which rows are compared: a reference that looks at values may agree with itself by chance.
_DRAWS = 4


def row_symbol(inputs: Args, outputs: Args, small: Sizes, forward: Forward) -> str | None:
    """The first symbol whose rows do not depend on each other; None if there is none.

    Any rows alone, in any order, give the same rows of all outputs.
    """
    for symbol in dict.fromkeys(symbol for arg in outputs for symbol in arg.shape):
        if not symbol.isidentifier() or not all(arg.shape.count(symbol) == 1 for arg in outputs):
            continue
        if any(_uses(arg, symbol) != arg.shape.count(symbol) or arg.shape.count(symbol) > 1 for arg in inputs):
            continue
        if all(_independent(inputs, outputs, small, forward, symbol, seed) for seed in range(_DRAWS)):
            return symbol
    return None


def _uses(arg: TensorArg, symbol: str) -> int:
    return sum(bool(re.search(rf"\b{symbol}\b", expression)) for expression in arg.shape)


def _independent(inputs: Args, outputs: Args, small: Sizes, forward: Forward, symbol: str, seed: int) -> bool:
    draw = Draw(seed)
    given = [arg.cast(arg.ordinary(small, draw), torch.float64) for arg in inputs]
    rows = torch.tensor([small[symbol] - 1, 0] if seed % 2 else [0])
    try:
        picked = forward(*(_picked(x, arg, symbol, rows) for x, arg in zip(given, inputs, strict=True)))
        whole = forward(*given)
    except Exception:
        return False
    return all(_near(_picked(y, arg, symbol, rows), part) for arg, y, part in zip(outputs, whole, picked, strict=True))


def _picked(tensor: Tensor, arg: TensorArg, symbol: str, rows: Tensor) -> Tensor:
    return tensor.index_select(arg.shape.index(symbol), rows) if symbol in arg.shape else tensor


def _near(one: Tensor, other: Tensor) -> bool:
    if not one.is_floating_point():
        return torch.equal(one, other)
    return one.shape == other.shape and bool(((one - other).abs() <= _AGREE * (1 + one.abs())).all())


def with_any_rank(inputs: Args, small: Sizes, forward: Forward) -> Args:
    """The inputs, with those marked that the reference takes with one more leading dimension."""
    found = []
    for place, arg in enumerate(inputs):
        draw = Draw(0)
        given = [each.cast(each.ordinary(small, draw), torch.float64) for each in inputs]
        given[place] = given[place].unsqueeze(0)
        try:
            forward(*given)
        except Exception:
            found.append(arg)
        else:
            found.append(replace(arg, any_rank=True))
    return tuple(found)


def renaming(symbols: tuple[str, ...], rows: str | None) -> dict[str, str]:
    """`batch` for the symbol of independent rows, and for no other."""
    renamed = {"batch": "batch_"} if "batch" in symbols and rows != "batch" else {}
    return renamed if rows is None else {**renamed, rows: "batch"}


def renamed(arg: TensorArg, names: Mapping[str, str]) -> TensorArg:
    """The tensor with other names for its symbols."""

    def text(expression: str) -> str:
        return re.sub(r"\b[A-Za-z_]\w*\b", lambda found: names.get(found[0], found[0]), expression)

    return replace(arg, shape=tuple(map(text, arg.shape)), scale=text(arg.scale), high=text(arg.high))
