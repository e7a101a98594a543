"""The cells as the page carries them: columns of numbers, and every text once.

A packed value is a number, true, false or null as itself; a text as its place in `texts`, in base 36; a list as
[-1, ...]; an object as [shape, ...], where `shapes[shape]` are its keys. `page/data.js` unpacks it.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import Any, TypeVar

from harness.judge import WORST_FIRST, Cell
from harness.rendering import facts

_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
_Key = TypeVar("_Key", bound=Hashable)


def base36(number: int) -> str:
    """The inverse of `parseInt(text, 36)`."""
    text = _DIGITS[number % 36]
    while number := number // 36:
        text = _DIGITS[number % 36] + text
    return text


class Packer:
    """Texts and shapes seen so far."""

    def __init__(self) -> None:
        self._texts: dict[str, int] = {}
        self._shapes: dict[tuple[str, ...], int] = {}

    def text(self, value: str) -> int:
        """Its place in `texts`."""
        return _place(self._texts, value)

    def value(self, value: Any) -> Any:
        """The packed form of what JSON can hold. Six digits are more than a page shows; the record has them all."""
        match value:
            case bool() | int() | None:
                return value
            case float() if not math.isfinite(value):
                return self.value(str(value))
            case float():
                return float(f"{value:.6g}")
            case str():
                return base36(self.text(value))
            case dict():
                return [_place(self._shapes, tuple(map(str, value))), *map(self.value, value.values())]
            case list() | tuple():
                return [-1, *map(self.value, value)]
        raise TypeError(f"a figure was {type(value).__name__}, but should be what JSON can hold")

    def tables(self) -> dict[str, Any]:
        """What a reader needs beside the values."""
        return {"texts": list(self._texts), "shapes": [list(keys) for keys in self._shapes]}


def _place(known: dict[_Key, int], key: _Key) -> int:
    return known.setdefault(key, len(known))


def ordered(cells: Sequence[Cell]) -> list[Cell]:
    """The cells in the order of the suite's own names."""
    index = {name: {value: place for place, value in enumerate(facts.axis(cells, name))} for name in facts.AXES}
    return sorted(cells, key=lambda cell: tuple(index[name][getattr(cell, name)] for name in facts.AXES))


def packed(cells: Sequence[Cell]) -> dict[str, Any]:
    """The cells as they come, with what the page needs to name, count and sort them."""
    packer = Packer()
    axes = {name: facts.axis(cells, name) for name in facts.AXES}
    index = {name: {value: place for place, value in enumerate(values)} for name, values in axes.items()}
    columns: dict[str, list[Any]] = {name: [index[name][getattr(cell, name)] for cell in cells] for name in facts.AXES}
    columns["verdict"] = [WORST_FIRST.index(cell.verdict) for cell in cells]
    columns["reason"] = [packer.text(cell.reason) for cell in cells]
    columns["seconds"] = [packer.value(cell.seconds) for cell in cells]
    columns["used"] = [_share(facts.used(cell)) for cell in cells]
    columns["figures"] = [packer.value(cell.figures) if cell.figures else None for cell in cells]
    told = facts.claims()
    return {
        "axes": axes,
        "verdicts": list(WORST_FIRST),
        "claims": {name: told[name] for name in axes["property"] if name in told},
        "columns": columns,
        **packer.tables(),
    }


def _share(value: float | None) -> float | None:
    """JSON has no infinity: an error without bound is the largest number there is."""
    return None if value is None else float(f"{min(value, 1e300):.4g}")
