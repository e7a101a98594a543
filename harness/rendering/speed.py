"""Charts of speed, drawn from a bench record: ratios with their intervals, the roofline, and time against size.

Backends are drawn in the given `order`, which is the suite's. A picture is for one operator, device, dtype, clock and
number of threads: only rows that were timed together are compared.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes

from harness.rendering.canvas import (
    ALARM,
    BUDGET,
    DASHES,
    INK,
    MUTED,
    SERIES,
    STYLE,
    Chart,
    Charts,
    canvas,
    look,
    mark,
    svg,
    within,
)
from harness.rendering.speedups import PHASES, REFERENCE

Row = dict[str, Any]
Where = tuple[str, str, str, str, int | None]
_Draw = Callable[[dict[str, Any], Sequence[str], Where, list[Row]], Chart | None]


def ratios(record: dict[str, Any], order: Sequence[str] = ()) -> Charts:
    """How many times as fast as the reference each backend is, with the 95% interval: one bar for each phase."""
    return _each(record, order, _ratios)


def roofline(record: dict[str, Any], order: Sequence[str] = ()) -> Charts:
    """Operations per second against operations per byte, below the machine's rates of copies and products."""
    return _each(record, order, _roofline)


def times(record: dict[str, Any], order: Sequence[str] = ()) -> Charts:
    """Seconds of forward and backward together against the bytes that they must move at least."""
    return _each(record, order, _times)


def _each(record: dict[str, Any], order: Sequence[str], draw: _Draw) -> Charts:
    places = list(_places(record["rows"]))
    return within(BUDGET // 3, (partial(draw, record, order, where, rows) for where, rows in places))


def _places(rows: Sequence[Row]) -> Iterator[tuple[Where, list[Row]]]:
    found: dict[Where, list[Row]] = {}
    for row in rows:
        where = (row["operator"], row["device"], row["dtype"], row["clock"], row["threads"])
        found.setdefault(where, []).append(row)
    yield from found.items()


def _title(where: Where) -> str:
    clock = {"wall": "eager calls", "graph": "in a CUDA graph", "throughput": "eager calls, none waited for"}.get(
        where[3], where[3]
    )
    threads = where[4]
    return clock if threads is None else f"{clock}, {threads} thread{'' if threads == 1 else 's'}"


def _salt(kind: str, where: Where) -> str:
    return "/".join(map(str, (kind, *where)))


def _backends(rows: Sequence[Row], order: Sequence[str]) -> list[str]:
    """The backends of `order` first, in its order, then all others."""
    there = list(dict.fromkeys(row["backend"] for row in rows))
    first = [name for name in order if name in there]
    return first + [name for name in there if name not in first]


def _ratios(record: dict[str, Any], order: Sequence[str], where: Where, rows: list[Row]) -> Chart | None:
    del record
    compared = [row for row in rows if row["backend"] != REFERENCE and REFERENCE in row["ratios"]]
    if not compared:
        return None
    lines = [
        (case, backend)
        for case in dict.fromkeys(row["case"] for row in compared)
        for backend in ["", *_backends([row for row in compared if row["case"] == case], order)]
    ]
    height = [10 if backend == "" else 22 for _, backend in lines]
    middles = [sum(height[:k]) + height[k] / 2 for k in range(len(lines))]
    with mpl.rc_context(STYLE):
        figure, axes = canvas(1.15 * sum(height) + 46)
        axes.axvline(1, color=INK, linewidth=1)
        for number, phase in enumerate(PHASES):
            bars: list[float] = []
            spans: list[float] = []
            at: list[float] = []
            for (case, backend), middle in zip(lines, middles, strict=True):
                for row in compared:
                    if (row["case"], row["backend"], row["phase"]) == (case, backend, phase):
                        ratio = row["ratios"][REFERENCE]
                        at += [middle + 6 * (number - 1)] * 2 + [math.nan]
                        bars += [1, ratio["median"], math.nan]
                        spans += [ratio["low"], ratio["high"], math.nan]
            axes.plot(bars, at, color=SERIES[number], linewidth=5, solid_capstyle="butt", alpha=0.75)
            axes.plot(spans, at, color=INK, linewidth=1, solid_capstyle="butt")
        _factors(axes, [row["ratios"][REFERENCE] for row in compared])
        axes.set_yticks(middles, [mark(k) for k in range(len(lines))])
        axes.set_ylim(sum(height), 0)
        axes.set_xlabel(f"times as fast as {REFERENCE}")
        axes.grid(axis="x")
        drawn = svg(figure, _salt("ratios", where), [backend or f"— {case} —" for case, backend in lines])
    best = max(compared, key=lambda row: row["ratios"][REFERENCE]["median"])
    ratio = best["ratios"][REFERENCE]
    summary = (
        f"At most {ratio['median']:.3g} times as fast ({ratio['low']:.3g} to {ratio['high']:.3g}): {best['backend']}, "
        f"{best['phase']}, {best['case']}."
    )
    legend = tuple((phase, number, "s") for number, phase in enumerate(PHASES))
    return Chart(*where[:3], drawn, summary, legend, _title(where))


def _factors(axes: Axes, found: Sequence[dict[str, float]]) -> None:
    """An axis of factors: as far to ½ as to 2."""
    low = min(0.8, *(ratio["low"] for ratio in found))
    high = max(1.25, *(ratio["high"] for ratio in found))
    axes.set_xscale("log", base=2)
    axes.set_xlim(low / 1.05, high * 1.05)
    powers = range(math.ceil(math.log2(low)), math.floor(math.log2(high)) + 1)
    step = 1 + len(powers) // 7
    shown = sorted({0, *powers[::step]}) if len(powers) > 1 else [0]
    axes.set_xticks([2.0**power for power in shown], [f"{2.0**power:g}" for power in shown])
    axes.minorticks_off()


def _ceiling(record: dict[str, Any], where: Where) -> tuple[float, float] | None:
    """(operations per second of a matrix product, bytes per second of the largest copy) of the same run."""
    for ceiling in record["ceilings"]:
        if (ceiling["device"], ceiling["dtype"], ceiling["threads"]) == (where[1], where[2], where[4]):
            return ceiling["flops_per_second"], max(ceiling["copies"], key=lambda copy: copy[0])[1]
    return None


def _roofline(record: dict[str, Any], order: Sequence[str], where: Where, rows: list[Row]) -> Chart | None:
    ceiling = _ceiling(record, where)
    counted = [row for row in rows if row["flops"] > 0 and row["bytes"] > 0]
    if ceiling is None or not counted:
        return None
    flops, bandwidth = ceiling
    names = _backends(counted, order)
    intensities = [row["flops"] / row["bytes"] for row in counted]
    low, high = min(*intensities, flops / bandwidth) / 2, max(*intensities, flops / bandwidth) * 2
    with mpl.rc_context(STYLE):
        figure, axes = canvas(210, left=52)
        roof = [low, flops / bandwidth, high]
        axes.plot(roof, [min(flops, bandwidth * x) for x in roof], color=ALARM, linewidth=1.4)
        for number, name in enumerate(names):
            series, marker = look(number)
            here = [row for row in counted if row["backend"] == name]
            axes.plot(
                [row["flops"] / row["bytes"] for row in here],
                [row["flops"] / row["seconds"]["median"] for row in here],
                marker,
                color=SERIES[series],
                markersize=5,
                alpha=0.85,
                markeredgewidth=0,
            )
        axes.set_xscale("log")
        axes.set_yscale("log")
        _decades(axes)
        axes.set_xlabel("operations a byte")
        axes.set_ylabel("operations a second")
        axes.grid()
        drawn = svg(figure, _salt("roofline", where), [])
    best = max(counted, key=lambda row: row["roofline"]["fraction"])
    share = 100 * best["roofline"]["fraction"]
    summary = f"At most {share:.0f}% of what the machine can: {best['backend']}, {best['phase']}, {best['case']}. "
    summary += f"The line is {bandwidth / 1e9:.3g} GB/s of copies and {flops / 1e9:.3g} GFLOP/s of products."
    return Chart(*where[:3], drawn, summary, _legend(names), _title(where))


def _times(record: dict[str, Any], order: Sequence[str], where: Where, rows: list[Row]) -> Chart | None:
    del record
    timed = sorted(
        (row for row in rows if row["phase"] == PHASES[2] and row["bytes"] > 0), key=lambda row: row["bytes"]
    )
    if not timed:
        return None
    names = _backends(timed, order)
    with mpl.rc_context(STYLE):
        figure, axes = canvas(210, left=52)
        floor = {row["bytes"]: row["roofline"]["seconds"] for row in timed}
        axes.plot(list(floor), list(floor.values()), color=ALARM, linewidth=1.2, linestyle=DASHES[1])
        for number, name in enumerate(names):
            series, marker = look(number)
            here = [row for row in timed if row["backend"] == name]
            sizes, medians = [row["bytes"] for row in here], [row["seconds"]["median"] for row in here]
            axes.plot(sizes, medians, marker=marker, color=SERIES[series], linewidth=1.2, markersize=4.5, alpha=0.85)
        axes.set_xscale("log")
        axes.set_yscale("log")
        _decades(axes)
        axes.set_xlabel("bytes moved at the least")
        axes.set_ylabel("seconds")
        axes.grid()
        drawn = svg(figure, _salt("times", where), [])
    cases = list(dict.fromkeys(row["case"] for row in timed))
    summary = f"Forward and backward of {', '.join(cases)}; the dashed line is the roofline."
    return Chart(*where[:3], drawn, summary, _legend(names), _title(where))


def _decades(axes: Axes) -> None:
    """Powers of ten as text: matplotlib's own labels consist of parts whose positions do not fit this page's font."""
    for axis, (low, high) in ((axes.xaxis, axes.get_xlim()), (axes.yaxis, axes.get_ylim())):
        powers = range(math.ceil(math.log10(low)), math.floor(math.log10(high)) + 1)
        shown = list(powers[:: 1 + len(powers) // 6])
        axis.set_ticks([10.0**power for power in shown], labels=[_ten_to(power) for power in shown])
        axis.set_minor_locator(mpl.ticker.NullLocator())
    axes.spines["bottom"].set_color(MUTED)


def _ten_to(power: int) -> str:
    digits = str(power).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"10{digits}"


def _legend(names: Sequence[str]) -> tuple[tuple[str, int, str], ...]:
    return tuple((name, *look(number)) for number, name in enumerate(names))
