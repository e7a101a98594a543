"""Charts of accuracy. A chart is for one operator, device and dtype."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import partial

from harness.rendering import facts
from harness.rendering.canvas import (
    ALARM,
    BUDGET,
    DASHES,
    LIMIT,
    MUTED,
    SERIES,
    Axis,
    Chart,
    Charts,
    Picture,
    listed,
    look,
    within,
)
from harness.report import figures
from harness.report.cell import FAIL, Cell
from harness.report.histogram import BINS
from harness.report.report import Report

#: A row with more marks than this is drawn as its range, quartiles and worst mark.
CROWDED = 60
_STEPS = (1, 10, 100, 1000)


def accuracy(report: Report, budget: int = BUDGET // 3) -> Charts:
    """How much of its allowance each cell used: one row for each backend, one mark for each property."""
    return within(budget, (partial(_accuracy, report, *place) for place in _places(report, report.cells)))


def ulps(report: Report, budget: int = BUDGET // 3) -> Charts:
    """Errors in units in the last place: one row for each backend, with outputs above its line, gradients below."""
    counted = [cell for cell in report.cells if cell.property in _COUNTED and figures.ulps(cell)]
    return within(budget, (partial(_ulps, report, *place) for place in _places(report, counted)))


def drift(report: Report, budget: int = BUDGET // 3) -> Charts:
    """The error of a recurrent state, in units of the allowance after that many steps."""
    with_points = [cell for cell in report.cells if figures.drift(cell)]
    return within(budget, (partial(_drift, report, *place) for place in _places(report, with_points)))


def _places(report: Report, cells: Sequence[Cell]) -> Iterator[tuple[tuple[str, str, str], list[Cell]]]:
    found: dict[tuple[str, str, str], list[Cell]] = {}
    for cell in cells:
        found.setdefault((cell.operator, cell.device, cell.dtype), []).append(cell)
    names = ("operator", "device", "dtype")
    order = [{value: place for place, value in enumerate(facts.axis(report, name))} for name in names]
    yield from sorted(
        found.items(), key=lambda item: [places[value] for places, value in zip(order, item[0], strict=True)]
    )


#: The axis of shares of an allowance.
_SHARES = Axis(
    -0.015, 1.12, ((0, "0"), (0.25, "¼"), (0.5, "½"), (0.75, "¾"), (1, "1")), "error in units of the allowance"
)


def _accuracy(report: Report, where: tuple[str, str, str], cells: list[Cell]) -> Chart | None:
    marks: dict[str, list[tuple[float, bool, str]]] = {}
    for cell in cells:
        share = figures.used(cell)
        if share is not None:
            marks.setdefault(cell.backend, []).append((share, cell.verdict == FAIL, cell.property))
    if not marks:
        return None
    names = facts.axis(report, "backend", [cell for cell in cells if cell.backend in marks])
    picture = Picture(18.0 * len(names) + 46, _SHARES, listed(names, 0.6, 0.6))
    picture.beyond(1, _SHARES.high)
    for row, name in enumerate(names):
        _row(picture, row, marks[name])
    worst = max((share, who, what) for who, found in marks.items() for share, _, what in found)
    summary = f"At most {facts.share_words(worst[0])} of the allowance was used: {worst[2]} of {worst[1]}."
    return Chart(*where, picture.svg(), summary)


def _row(picture: Picture, row: int, marks: list[tuple[float, bool, str]]) -> None:
    held = sorted(share for share, failed, _ in marks if not failed)
    beyond = [min(share, 1.075) for share, failed, _ in marks if failed]
    if len(held) > CROWDED:
        quarter = len(held) // 4
        picture.line([(held[0], row), (held[-1], row)], SERIES[0], 1)
        picture.line([(held[quarter], row), (held[-1 - quarter], row)], SERIES[0], 5, opacity=0.5)
        held = held[-1:]
    picture.marks([(share, row) for share in held], "o", SERIES[0], 5, opacity=0.5)
    picture.marks([(share, row) for share in held[-1:]], "o", SERIES[0], 6.5)
    picture.marks([(share, row) for share in beyond], "X", ALARM, 7)


#: The properties that count outputs and gradients. Both count the outputs of the same calls.
_COUNTED = {"forward-parity": "outputs", "vjp-parity": "gradients"}


#: The axis of bins. A tick is at the right end of its bin: «at most this many».
_UNITS = Axis(
    0,
    BINS,
    ((1, "½"), (2, "1"), (4, "4"), (6, "16"), (8, "64"), (10, "256"), (12, "1024")),
    "error in units in the last place, at most",
)


def _ulps(report: Report, where: tuple[str, str, str], cells: list[Cell]) -> Chart | None:
    names = facts.axis(report, "backend", cells)
    found: dict[str, dict[str, list[int]]] = {name: {} for name in names}
    for cell in cells:
        kind = _COUNTED[cell.property]
        found[cell.backend] |= {kind: figures.ulps(cell).get(kind, [0] * BINS)}
    counts = [count for row in found.values() for counts in row.values() for count in counts]
    if not any(counts):
        return None
    tallest = math.log1p(max(counts))
    picture = Picture(30.0 * len(names) + 46, _UNITS, listed(names, 0.5, 0.5))
    for row, name in enumerate(names):
        picture.line([(0, row), (BINS, row)], MUTED, 0.6)
        for kind, up, colour in (("outputs", -1, SERIES[0]), ("gradients", 1, SERIES[1])):
            heights = [row + up * 0.44 * math.log1p(count) / tallest for count in found[name].get(kind, [0] * BINS)]
            steps = [(bin + side, height) for bin, height in enumerate(heights) for side in (0, 1)]
            picture.area([(0, row), *steps, (BINS, row)], colour)
    return Chart(*where, picture.svg(), _within_half(found), _KINDS)


#: The legend of these.
_KINDS = (("outputs, upwards", 0, "s"), ("gradients, downwards", 1, "s"))


def _within_half(rows: dict[str, dict[str, list[int]]]) -> str:
    """The share of elements within half a unit, for the backend with the smallest share."""
    parts = {}
    for name, kinds in rows.items():
        total = sum(map(sum, kinds.values()))
        if total:
            parts[name] = sum(counts[0] for counts in kinds.values()) / total
    least = min(parts, key=lambda name: parts[name])
    share = math.floor(1000 * parts[least]) / 10  # rounded down, so that 100% means all of them
    return f"Within half a unit: {share:g}% of the elements of {least}, and no less of the others."


def _drift(report: Report, where: tuple[str, str, str], cells: list[Cell]) -> Chart | None:
    names = facts.axis(report, "backend", cells)
    lines: dict[tuple[str, str], list[tuple[int, float]]] = {}
    for cell in cells:
        for state, steps, share in figures.drift(cell):
            lines.setdefault((cell.backend, state), []).append((steps, share))
    states = list(dict.fromkeys(state for _, state in lines))
    longest = max(*_STEPS, *(steps for points in lines.values() for steps, _ in points))
    largest = max(share for points in lines.values() for _, share in points)
    picture = Picture(
        190,
        Axis(0.8, longest * 1.25, [(step, f"{step:,}") for step in _STEPS], "steps that feed themselves", log=True),
        Axis(0, max(1.08, min(largest, 2.0) * 1.08), ((0, "0"), (0.5, "½"), (1, "1"))),
        left=44,
    )
    for (name, state), points in lines.items():
        series, marker = look(names.index(name))
        dash = DASHES[states.index(state) % len(DASHES)]
        picture.line(points, SERIES[series], 1.4, dash=dash, opacity=0.85)
        picture.marks(points, marker, SERIES[series], 5.5, opacity=0.85)
    picture.line([(0.8, 1), (longest * 1.25, 1)], ALARM, 1.2, dash=LIMIT)
    summary = f"At most {facts.share_words(largest)} of what is allowed after so many steps. "
    summary += "; ".join(f"{state} {('solid', 'dashed', 'dotted')[k % 3]}" for k, state in enumerate(states)) + "."
    return Chart(*where, picture.svg(), summary, tuple((name, *look(k)) for k, name in enumerate(names)))
