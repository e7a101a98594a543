"""Charts of accuracy. A chart is for one operator, device and dtype."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from harness.rendering import facts
from harness.rendering.canvas import (
    ALARM,
    BUDGET,
    DASHES,
    MUTED,
    SERIES,
    Chart,
    Charts,
    canvas,
    look,
    mark,
    style,
    svg,
    within,
)
from harness.report import figures
from harness.report.cell import FAIL, Cell
from harness.report.histogram import BINS
from harness.report.report import Report

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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


def _accuracy(report: Report, where: tuple[str, str, str], cells: list[Cell]) -> Chart | None:
    rows: dict[str, list[tuple[float, bool, str]]] = {}
    for cell in cells:
        share = figures.used(cell)
        if share is not None:
            rows.setdefault(cell.backend, []).append((share, cell.verdict == FAIL, cell.property))
    if not rows:
        return None
    names = facts.axis(report, "backend", [cell for cell in cells if cell.backend in rows])
    with style():
        figure, axes = canvas(18.0 * len(names) + 46)
        axes.axvline(1, color=ALARM, linewidth=1.2, linestyle=(0, (4, 2)))
        axes.axvspan(1, 1.12, color=ALARM, alpha=0.12, linewidth=0)
        for row, name in enumerate(names):
            _row(axes, row, rows[name])
        axes.set_yticks(range(len(names)), [mark(row) for row in range(len(names))])
        axes.set_ylim(len(names) - 0.4, -0.6)
        axes.set_xlim(-0.015, 1.12)
        axes.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0", "¼", "½", "¾", "1"])
        axes.set_xlabel("error in units of the allowance")
        axes.grid(axis="x")
        drawn = svg(figure, "accuracy" + "/".join(where), names)
    worst = max((share, who, what) for who, marks in rows.items() for share, _, what in marks)
    summary = f"At most {facts.share_words(worst[0])} of the allowance was used: {worst[2]} of {worst[1]}."
    return Chart(*where, drawn, summary)


def _row(axes: Axes, row: int, marks: list[tuple[float, bool, str]]) -> None:
    held = sorted(share for share, failed, _ in marks if not failed)
    beyond = [min(share, 1.075) for share, failed, _ in marks if failed]
    if len(held) > CROWDED:
        quarter = len(held) // 4
        axes.plot([held[0], held[-1]], [row, row], color=SERIES[0], linewidth=1)
        axes.plot([held[quarter], held[-1 - quarter]], [row, row], color=SERIES[0], linewidth=5, alpha=0.5)
        held = held[-1:]
    axes.plot(held, [row] * len(held), "o", color=SERIES[0], markersize=5, alpha=0.5, markeredgewidth=0)
    if held:
        axes.plot(held[-1:], [row], "o", color=SERIES[0], markersize=5.5)
    axes.plot(beyond, [row] * len(beyond), "X", color=ALARM, markersize=7, markeredgewidth=0)


#: The properties that count outputs and gradients. Both count the outputs of the same calls.
_COUNTED = {"forward-parity": "outputs", "vjp-parity": "gradients"}


def _ulps(report: Report, where: tuple[str, str, str], cells: list[Cell]) -> Chart | None:
    names = facts.axis(report, "backend", cells)
    rows: dict[str, dict[str, list[int]]] = {name: {} for name in names}
    for cell in cells:
        kind = _COUNTED[cell.property]
        rows[cell.backend] |= {kind: figures.ulps(cell).get(kind, [0] * BINS)}
    counts = [count for row in rows.values() for counts in row.values() for count in counts]
    if not any(counts):
        return None
    tallest = math.log1p(max(counts))
    with style():
        figure, axes = canvas(30.0 * len(names) + 46)
        for row, name in enumerate(names):
            axes.axhline(row, color=MUTED, linewidth=0.6)
            for kind, up, colour in (("outputs", -1, SERIES[0]), ("gradients", 1, SERIES[1])):
                heights = [row + up * 0.44 * math.log1p(count) / tallest for count in rows[name].get(kind, [0] * BINS)]
                axes.stairs(heights, range(BINS + 1), baseline=row, fill=True, color=colour, linewidth=0)
        axes.set_yticks(range(len(names)), [mark(row) for row in range(len(names))])
        axes.set_ylim(len(names) - 0.5, -0.5)
        axes.set_xlim(0, BINS)
        # At the right end of its bin: «at most this many».
        axes.set_xticks([1, 2, 4, 6, 8, 10, 12], ["½", "1", "4", "16", "64", "256", "1024"])
        axes.set_xlabel("error in units in the last place, at most")
        axes.grid(axis="x")
        drawn = svg(figure, "ulps" + "/".join(where), names)
    return Chart(*where, drawn, _within_half(rows), _KINDS)


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
    states: list[str] = []
    longest, largest = max(_STEPS), 0.0
    with style():
        figure, axes = canvas(190, left=44)
        for cell in cells:
            lines: dict[str, list[tuple[int, float]]] = {}
            for state, steps, share in figures.drift(cell):
                lines.setdefault(state, []).append((steps, min(share, 1e6)))
                longest, largest = max(longest, steps), max(largest, share)
            for state, points in lines.items():
                if state not in states:
                    states.append(state)
                series, marker = look(names.index(cell.backend))
                dash = states.index(state) % len(DASHES)
                axes.plot(
                    *zip(*points, strict=True),
                    color=SERIES[series],
                    marker=marker,
                    linestyle=DASHES[dash],
                    linewidth=1.4,
                    markersize=4.5,
                    alpha=0.85,
                )
        axes.axhline(1, color=ALARM, linewidth=1.2, linestyle=(0, (4, 2)))
        axes.set_xscale("log")
        axes.minorticks_off()
        axes.set_xlim(0.8, longest * 1.25)
        axes.set_xticks(_STEPS, [f"{steps:,}" for steps in _STEPS])
        axes.set_ylim(0, max(1.08, min(largest, 2.0) * 1.08))
        axes.set_yticks([0, 0.5, 1], ["0", "½", "1"])
        axes.set_xlabel("steps that feed themselves")
        axes.grid()
        drawn = svg(figure, "drift" + "/".join(where), [])
    summary = f"At most {facts.share_words(largest)} of what is allowed after so many steps. "
    summary += "; ".join(f"{state} {('solid', 'dashed', 'dotted')[k % 3]}" for k, state in enumerate(states)) + "."
    return Chart(*where, drawn, summary, tuple((name, *look(k)) for k, name in enumerate(names)))
