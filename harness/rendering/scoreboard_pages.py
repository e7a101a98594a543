"""The pages of a scoreboard: one with every implementation, and one of evidence for each operator on each machine.

The pages have no script and load nothing. Their addresses are permanent: those of `index.html#MACHINE` and of
`MACHINE/OPERATOR.html#BACKEND/DEVICE/LEVEL/DTYPE` are made of names alone, so they stay when the records change.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from markupsafe import Markup

from harness.rendering import facts, templates
from harness.rendering.marks import MARKS, cut, first_line
from harness.rendering.scoreboard import JudgedBackend, Machine, Mark, Operator, short
from harness.rendering.speedups import NATIVE, REFERENCE, Speedup, shown
from harness.report import figures
from harness.report.cell import DECLARED, FAIL, PASS, UNTESTED, Cell
from harness.report.levels import LEVELS, MEANINGS

#: Characters of a reason, and of what a declared cell showed.
_LONGEST, _SEEN = 900, 300
_DTYPES = {"float32": "f32", "float64": "f64", "float16": "f16", "bfloat16": "bf16"}
_BASELINES = {NATIVE: "PyTorch's own operator", REFERENCE: "the plain PyTorch expression"}
_CLOCKS = {"wall": "eager calls", "graph": "GPU alone, in a CUDA graph", "throughput": "eager calls, none waited for"}


@dataclass(frozen=True)
class Note:
    """Why cells of a level are no passes: the reason, the cells, and what a declared one showed when it was checked."""

    verdict: str
    cells: str
    reason: str
    seen: str


@dataclass(frozen=True)
class PropertyLine:
    """A property at a level: its marks by dtype, how many calls were compared, and the calls that gave the level's
    largest error in a dtype."""

    property: str
    marks: tuple[Mark, ...]
    calls: str
    tightest: tuple[str, ...]


def pages(machines: tuple[Machine, ...], whole: Mapping[str, str]) -> dict[str, str]:
    """The text of each page by its path. `whole` has the address of a record's report page, from the same folder."""
    drawn = {"index.html": _draw("scoreboard", machines=machines)}
    for machine in machines:
        for operator in machine.operators:
            address = f"{machine.slug}/{operator.name}.html"
            drawn[address] = _draw("evidence", machine=machine, operator=operator, whole=whole)
    return drawn


def _draw(name: str, **values: Any) -> str:
    style = "\n".join(templates.part(f"{each}.css") for each in ("theme", "plain", name))
    text = templates.environment().get_template(f"{name}.html.j2").render(style=Markup(style), **_HELPERS, **values)
    # Indentation is a fifth of such a page.
    return "".join(f"{line.strip()}\n" for line in text.splitlines() if line.strip())


def anchor(one: JudgedBackend, *more: str) -> str:
    """The place of an implementation's evidence, of its level, or of its level in one dtype."""
    return quote("/".join((one.backend, one.device, *more)))


def _lines(one: JudgedBackend, level: str, dtypes: list[str]) -> list[PropertyLine]:
    """The properties with a cell at the level, in the suite's order."""
    at = [cell for found, _, cell in one.counted if found == level]
    largest = {dtype: one.mark(level, dtype).error for dtype in dtypes}
    lines = []
    for name in one.report.suite.ordered("property", (cell.property for cell in at)):
        cells = [cell for cell in at if cell.property == name]
        marks = tuple(one.mark(level, dtype, name) for dtype in dtypes)
        here = {dtype for dtype, mark in zip(dtypes, marks, strict=True) if mark.error is not None}
        near = [cell for cell in cells if cell.dtype in here and figures.used(cell) == largest[cell.dtype]]
        tightest = [_where(cell) for cell in sorted(near, key=lambda cell: dtypes.index(cell.dtype))]
        lines.append(PropertyLine(name, marks, _calls(cells), tuple(filter(None, tightest))))
    return lines


def _calls(cells: list[Cell]) -> str:
    """How many calls were compared in the dtype with most."""
    counts = [count for cell in cells if isinstance(count := cell.figures.get("scenarios"), int)]
    return f"{max(counts)} calls" if counts and max(counts) > 1 else ""


def _where(cell: Cell) -> str:
    """`f16 0.82: output, elementwise, in lltm(small: batch=3)`."""
    found = cell.figures.get("worst")
    if not isinstance(found, dict):
        return ""
    number = f"{_DTYPES.get(cell.dtype, cell.dtype)} {short(figures.used(cell))}"
    return cut(f"{number}: {found.get('tensor')}, {found.get('statistic')}, in {found.get('scenario')}", _SEEN)


def _notes(one: JudgedBackend, level: str) -> list[Note]:
    """The reasons at a level, failures first, each once."""
    found: dict[tuple[str, str, str], list[Cell]] = {}
    for at, verdict, cell in one.counted:
        if at == level and verdict != PASS:
            seen = first_line(str(cell.figures.get("seen") or ""), _SEEN) if verdict == DECLARED else ""
            found.setdefault((verdict, cut(cell.reason, _LONGEST), seen), []).append(cell)
    order = (FAIL, *UNTESTED)
    drawn = [Note(verdict, _named(cells), reason, seen) for (verdict, reason, seen), cells in found.items()]
    return sorted(drawn, key=lambda note: order.index(note.verdict))


def _named(cells: list[Cell]) -> str:
    """`sizes (float32, float16), layouts (float32)`."""
    by_name: dict[str, list[str]] = {}
    for cell in cells:
        by_name.setdefault(cell.property, []).append(cell.dtype)
    return ", ".join(f"{name} ({', '.join(dtypes)})" for name, dtypes in by_name.items())


def _claims(operator: Operator) -> dict[str, str]:
    """What each property asks that a cell of these pages is about, by name."""
    reports = {one.record: one.report for one in operator.judged}.values()
    asked = {cell.property for one in operator.judged for cell in one.cells}
    known = {found.name: found.claim for report in reports for found in report.suite.properties}
    return {name: claim for name, claim in sorted(known.items()) if name in asked and claim}


def _headline(machine: Machine) -> str:
    """How many implementations hold, in a sentence."""
    ones = machine.judged
    whole = sum(one.reached(PASS) == len(LEVELS) for one in ones)
    but = sum(one.reached(PASS, DECLARED) == len(LEVELS) for one in ones) - whole
    failed = sum(FAIL in one.verdicts.values() for one in ones)
    parts = [f"{whole} hold at all five levels"]
    parts += [f"{but} more but for what they declare"] if but else []
    parts += [f"{failed} fail at one of them"] if failed else []
    unknown = len(ones) - whole - but - failed
    parts += [f"of {unknown} it is not known"] if unknown else []
    return f"{len(machine.operators)} operators in {len(ones)} implementations: {', '.join(parts)}."


def _ratio(found: Speedup) -> str:
    """`3.12` or `0.087`."""
    return f"{found.median:.3g}"


def _interval(found: Speedup, to: str = " to ") -> str:
    return f"{found.low:.3g}{to}{found.high:.3g}"


def _call(found: Speedup) -> str:
    """What was timed."""
    threads = "" if found.threads is None else f", {found.threads} thread{'' if found.threads == 1 else 's'}"
    return f"{found.case}, {found.phase}, {_CLOCKS.get(found.clock, found.clock)}{threads}"


def _seconds(value: float) -> str:
    """Three digits and a unit."""
    for unit, factor in (("s", 1.0), ("ms", 1e3), ("µs", 1e6)):
        if value * factor >= 1:
            return f"{value * factor:.3g} {unit}"
    return f"{value * 1e9:.3g} ns"


def _operators(machines: tuple[Machine, ...]) -> int:
    return len({operator.name for machine in machines for operator in machine.operators})


_HELPERS: dict[str, Any] = {
    "anchor": anchor,
    "baselines": _BASELINES,
    "call": _call,
    "claims": _claims,
    "commit": facts.commit,
    "dtype_names": _DTYPES,
    "headline": _headline,
    "interval": _interval,
    "levels": LEVELS,
    "lines": _lines,
    "marks": MARKS,
    "meanings": MEANINGS,
    "native": NATIVE,
    "notes": _notes,
    "operator_count": _operators,
    "place": facts.place,
    "ratio": _ratio,
    "seconds": _seconds,
    "short": short,
    "shown": shown,
}
