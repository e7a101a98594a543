"""A cell whose calls are shared out to the shards of a run, `--divide`: each shard judges a part, `merge` joins them.

A part that holds decides nothing: its verdict is `no-evidence`, and its figures are kept. The joined cell passes when
the parts of all shards hold, and there is evidence for each tensor in one of them at least. A part that fails is a
cell that fails.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from harness.report.cell import NO_EVIDENCE, PASS, Cell
from harness.report.figures import totals
from harness.report.shards import Shard, numbers

#: The figure of a part that holds: `of` how many, and those that `held`, each with its `number` and its `figures`.
PARTS = "parts"
#: The figure of a part, or of a form in it: by each tensor that it compared, whether a wrong one would have failed.
EVIDENT = "evident"


def is_part(cell: Cell) -> bool:
    """Whether the cell is not decided, because parts of it are missing."""
    return PARTS in cell.figures


def held(figures: Mapping[str, Any], part: Shard) -> dict[str, Any]:
    """The figures of the cell of a part that holds."""
    return {PARTS: {"of": part.count, "held": [{"number": part.number, "figures": dict(figures)}]}}


def reason(figures: Mapping[str, Any]) -> str:
    """Why a cell with these figures is not decided."""
    there, count = sorted(part["number"] for part in figures[PARTS]["held"]), figures[PARTS]["of"]
    found = f"part{'s' if len(there) > 1 else ''} {numbers(there)} of {count} hold{'' if len(there) > 1 else 's'}"
    return f"{found}: `merge` the reports of all shards of this run to know whether all of it does"


def joined(cells: Iterable[Cell]) -> list[Cell]:
    """The cells, those of parts joined: one that passes where all are there, else one that is still a part."""
    found: list[Cell] = []
    parts: dict[tuple[str, ...], list[Cell]] = {}
    for cell in cells:
        (parts.setdefault(cell.key, []) if is_part(cell) else found).append(cell)
    return [*found, *map(_joined, parts.values())]


def _joined(cells: Sequence[Cell]) -> Cell:
    of = cells[0].figures[PARTS]["of"]
    by_number = {part["number"]: part for cell in cells for part in cell.figures[PARTS]["held"]}
    there = [by_number[number] for number in sorted(by_number)]
    seconds = round(sum(cell.seconds for cell in cells), 4)
    if len(there) < of:
        figures = {PARTS: {"of": of, "held": there}}
        return replace(cells[0], reason=reason(figures), figures=figures, seconds=seconds)
    figures = _together([part["figures"] for part in there])
    blind = {title: names for title, names in _blind(figures).items() if names}
    if blind:
        said = (f"{title + ': ' if title else ''}{', '.join(names)}" for title, names in blind.items())
        why = f"in each of {of} parts, a wrong answer would have passed too for {'; '.join(said)}"
        return replace(cells[0], verdict=NO_EVIDENCE, reason=why, figures={"divided": of}, seconds=seconds)
    return replace(cells[0], verdict=PASS, reason="", figures={**_kept(figures), "divided": of}, seconds=seconds)


def _blind(figures: Mapping[str, Any], title: str = "") -> dict[str, list[str]]:
    """By the title of each form: the tensors without evidence."""
    found = {title: [name for name, is_evident in figures.get(EVIDENT, {}).items() if not is_evident]}
    for form, its in figures.get("forms", {}).items():
        found |= _blind(its, form)
    return found


def _kept(figures: Mapping[str, Any]) -> dict[str, Any]:
    """The figures of a cell that is decided: without those of evidence."""
    kept = {name: figure for name, figure in figures.items() if name != EVIDENT}
    if "forms" in kept:
        kept["forms"] = {title: _kept(its) for title, its in kept["forms"].items()}
    return kept


def _together(found: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The figures of a cell: counts added up, the worst error, and of everything else that of the first part."""
    together = {name: figure for figures in reversed(found) for name, figure in figures.items()} | totals(found)
    if "tensors" in together:
        together["tensors"] = max(figures.get("tensors", 0) for figures in found)
    evident = [figures[EVIDENT] for figures in found if EVIDENT in figures]
    if evident:
        names = sorted({name for each in evident for name in each})
        together[EVIDENT] = {name: any(each.get(name, False) for each in evident) for name in names}
    forms = [figures["forms"] for figures in found if "forms" in figures]
    if forms:
        titles = dict.fromkeys(title for each in forms for title in each)
        together["forms"] = {title: _together([each[title] for each in forms if title in each]) for title in titles}
    return together
