"""Charts of speed, drawn from a bench record: ratios with their intervals, the roofline, and time against size.

Backends are drawn in the given `order`, which is the suite's. A picture is for one operator, device, dtype, clock and
number of threads: only rows that were timed together are compared.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from harness.rendering.canvas import (
    ALARM,
    BUDGET,
    DASHES,
    INK,
    SERIES,
    Axis,
    Chart,
    Charts,
    Picture,
    look,
    short,
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
    names = [backend or f"— {case} —" for case, backend in lines]
    ticks = list(zip(middles, (short(name) for name in names), strict=True))
    picture = Picture(
        1.15 * sum(height) + 46,
        _factors([row["ratios"][REFERENCE] for row in compared]),
        Axis(sum(height), 0, ticks, grid=False),
    )
    picture.line([(1, 0), (1, sum(height))], INK, 1)
    for number, phase in enumerate(PHASES):
        for (case, backend), middle in zip(lines, middles, strict=True):
            for row in compared:
                if (row["case"], row["backend"], row["phase"]) == (case, backend, phase):
                    ratio, at = row["ratios"][REFERENCE], middle + 6 * (number - 1)
                    picture.line([(1, at), (ratio["median"], at)], SERIES[number], 5, opacity=0.75)
                    picture.line([(ratio["low"], at), (ratio["high"], at)], INK, 1)
    best = max(compared, key=lambda row: row["ratios"][REFERENCE]["median"])
    ratio = best["ratios"][REFERENCE]
    summary = (
        f"At most {ratio['median']:.3g} times as fast ({ratio['low']:.3g} to {ratio['high']:.3g}): {best['backend']}, "
        f"{best['phase']}, {best['case']}."
    )
    legend = tuple((phase, number, "s") for number, phase in enumerate(PHASES))
    return Chart(*where[:3], picture.svg(), summary, legend, _title(where))


def _factors(found: Sequence[dict[str, float]]) -> Axis:
    """An axis of factors: as far to ½ as to 2."""
    low = min(0.8, *(ratio["low"] for ratio in found))
    high = max(1.25, *(ratio["high"] for ratio in found))
    powers = range(math.ceil(math.log2(low)), math.floor(math.log2(high)) + 1)
    step = 1 + len(powers) // 7
    shown = sorted({0, *powers[::step]}) if len(powers) > 1 else [0]
    ticks = [(2.0**power, f"{2.0**power:g}") for power in shown]
    return Axis(low / 1.05, high * 1.05, ticks, f"times as fast as {REFERENCE}", log=True)


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
    roof = [(x, min(flops, bandwidth * x)) for x in (low, flops / bandwidth, high)]
    reached = [row["flops"] / row["seconds"]["median"] for row in counted]
    picture = Picture(
        210,
        _decades([low, high], "operations a byte"),
        _decades([*reached, *(rate for _, rate in roof)], "operations a second"),
        left=52,
    )
    picture.line(roof, ALARM, 1.4)
    for number, name in enumerate(names):
        series, marker = look(number)
        points = [(x, y) for x, y, row in zip(intensities, reached, counted, strict=True) if row["backend"] == name]
        picture.marks(points, marker, SERIES[series], 5, opacity=0.85)
    best = max(counted, key=lambda row: row["roofline"]["fraction"])
    share = 100 * best["roofline"]["fraction"]
    summary = f"At most {share:.0f}% of what the machine can: {best['backend']}, {best['phase']}, {best['case']}. "
    summary += f"The line is {bandwidth / 1e9:.3g} GB/s of copies and {flops / 1e9:.3g} GFLOP/s of products."
    return Chart(*where[:3], picture.svg(), summary, _legend(names), _title(where))


def _times(record: dict[str, Any], order: Sequence[str], where: Where, rows: list[Row]) -> Chart | None:
    del record
    timed = sorted(
        (row for row in rows if row["phase"] == PHASES[2] and row["bytes"] > 0), key=lambda row: row["bytes"]
    )
    if not timed:
        return None
    names = _backends(timed, order)
    floor = [(row["bytes"], row["roofline"]["seconds"]) for row in timed if row["roofline"]["seconds"] > 0]
    medians = [row["seconds"]["median"] for row in timed]
    picture = Picture(
        210,
        _decades([row["bytes"] for row in timed], "bytes moved at the least"),
        _decades([*medians, *(seconds for _, seconds in floor)], "seconds"),
        left=52,
    )
    if floor:
        picture.line(floor, ALARM, 1.2, dash=DASHES[1])
    for number, name in enumerate(names):
        series, marker = look(number)
        points = [(row["bytes"], row["seconds"]["median"]) for row in timed if row["backend"] == name]
        picture.line(points, SERIES[series], 1.2, opacity=0.85)
        picture.marks(points, marker, SERIES[series], 5.5, opacity=0.85)
    cases = list(dict.fromkeys(row["case"] for row in timed))
    summary = f"Forward and backward of {', '.join(cases)}; the dashed line is the roofline."
    return Chart(*where[:3], picture.svg(), summary, _legend(names), _title(where))


def _decades(values: Sequence[float], title: str) -> Axis:
    """A logarithmic axis that holds these values and a little more: at least one power of ten."""
    least, most = math.log10(min(values)), math.log10(max(values))
    margin = max(0.05 * (most - least), (1 - most + least) / 2)
    low, high = least - margin, most + margin
    powers = range(math.ceil(low), math.floor(high) + 1)
    shown = powers[:: 1 + len(powers) // 6]
    return Axis(10.0**low, 10.0**high, [(10.0**power, _ten_to(power)) for power in shown], title, log=True)


def _ten_to(power: int) -> str:
    digits = str(power).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"10{digits}"


def _legend(names: Sequence[str]) -> tuple[tuple[str, int, str], ...]:
    return tuple((name, *look(number)) for number, name in enumerate(names))
