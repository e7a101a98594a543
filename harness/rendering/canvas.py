"""Tools for pictures: SVG in the colours of the page, small enough for a phone. A template writes it and escapes names.

To import matplotlib would take longer than all else that draws a report.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from harness.rendering import templates

#: The most bytes of SVG in one page. A report of 20,000 cells has more charts than anybody looks at.
BUDGET = 1_200_000
#: Points: of a picture, and what its sides keep free for labels.
_WIDTH, _LEFT, _RIGHT, _BOTTOM, _TOP = 400.0, 138.0, 14.0, 38.0, 8.0
_LABEL = 22
#: The tallest picture in points: 200 rows.
_TALLEST = 4000.0
#: Lengths of an axis beyond which nothing is placed: a report may hold any number.
_FAR = 1e6
INK, MUTED, ALARM = "var(--ink)", "var(--muted)", "var(--fail)"
SERIES = tuple(f"var(--series-{number})" for number in range(6))
#: Shapes of marks by their letters, in a box of 12 by 12. The last one is only for what is beyond an axis.
SHAPES = {
    "o": "M6 1a5 5 0 1 0 .01 0z",
    "s": "M1.5 1.5h9v9h-9z",
    "^": "M6 1 11 11H1z",
    "D": "M6 0l6 6-6 6-6-6z",
    "v": "M1 1h10L6 11z",
    "P": "M4 1h4v3h3v4H8v3H4V8H1V4h3z",
    "X": "M3.5 1 6 3.5 8.5 1 11 3.5 8.5 6 11 8.5 8.5 11 6 8.5 3.5 11 1 8.5 3.5 6 1 3.5z",
}
MARKERS = ("o", "s", "^", "D", "v", "P")
#: Lengths of strokes and gaps, in points; empty for a solid line.
DASHES = ("", "6 3", "1.4 2.1")
#: Of the line that must not be crossed.
LIMIT = "4.8 2.4"


@dataclass(frozen=True)
class Chart:
    """One picture, with its title and legend."""

    operator: str
    device: str
    dtype: str
    svg: str
    summary: str
    #: (name, series, marker) of each line, if the picture has a legend.
    legend: tuple[tuple[str, int, str], ...] = ()
    #: The rest of the title.
    title: str = ""


@dataclass(frozen=True)
class Charts:
    """The pictures of one kind, and how many were left out to keep the page small."""

    drawn: tuple[Chart, ...]
    left_out: int


class TooTallError(ValueError):
    """A picture that nobody could read."""


def within(budget: int, tasks: Iterable[Callable[[], Chart | None]]) -> Charts:
    """The pictures of these tasks, up to `budget` bytes; the others are counted. None means no picture."""
    drawn: list[Chart] = []
    left_out, size = 0, 0
    for task in tasks:
        if size > budget:
            left_out += 1
            continue
        try:
            chart = task()
        except TooTallError:
            left_out += 1
            continue
        if chart is not None:
            drawn.append(chart)
            size += len(chart.svg)
    return Charts(tuple(drawn), left_out)


def look(number: int) -> tuple[int, str]:
    """(series, marker) of the line of that number: no two of the first 36 are alike."""
    return number % len(SERIES), MARKERS[(number + number // len(SERIES)) % len(MARKERS)]


@dataclass(frozen=True)
class Axis:
    """The values along one side of a picture, from its left or lower end; `low` may be the larger one.

    `ticks` are values and their texts. With `grid`, each tick has a line across the picture.
    """

    low: float
    high: float
    ticks: Sequence[tuple[float, str]]
    title: str = ""
    log: bool = False
    grid: bool = True

    def share(self, value: float) -> float:
        """How far along the side a value is: 0 at its beginning, 1 at its end. What is no number is far outside."""
        low, high, at = (_logarithm(each) if self.log else each for each in (self.low, self.high, value))
        return max(-_FAR, min(_FAR, (at - low) / (high - low)))


def listed(names: Sequence[str], above: float, below: float) -> Axis:
    """An axis with a row for each name from the top, with room `above` the first row and `below` the last."""
    return Axis(len(names) - 1 + below, -above, list(enumerate(map(short, names))), grid=False)


def short(name: str) -> str:
    """The name as far as there is room for it."""
    return name if len(name) <= _LABEL else f"{name[: _LABEL - 1]}…"


Points = Iterable[tuple[float, float]]


class Picture:
    """Lines, areas and marks between two axes. What is drawn first lies below; areas lie below the grid."""

    def __init__(self, height: float, x: Axis, y: Axis, left: float = _LEFT) -> None:
        """`height`, and the room for labels on the `left`, are in points. Raises TooTallError."""
        if height > _TALLEST:
            raise TooTallError(f"{height:.0f} points")
        self._x, self._y, self._left, self._height = x, y, left, height
        self._wide, self._tall = _WIDTH - left - _RIGHT, height - _BOTTOM - _TOP
        self._areas: list[dict[str, str]] = []
        self._drawn: list[dict[str, str]] = []

    def area(self, points: Points, colour: str, opacity: float = 1.0) -> None:
        """Fill what the points enclose."""
        self._areas.append({"d": f"{self._path(points)}z", "style": f"fill: {colour}{_opacity(opacity)}"})

    def line(self, points: Points, colour: str, width: float, *, dash: str = "", opacity: float = 1.0) -> None:
        """Join the points. `dash` are lengths of strokes and gaps."""
        style = f"fill: none; stroke: {colour}; stroke-width: {width:g}{_opacity(opacity)}"
        style += f"; stroke-dasharray: {dash}" * bool(dash)
        self._drawn.append({"d": self._path(points), "style": style, "place": ""})

    def marks(self, points: Points, marker: str, colour: str, size: float, *, opacity: float = 1.0) -> None:
        """A mark of that shape at each point. `size` is its width in points."""
        scale = size / 10
        for x, y in points:
            left, top = self._across(x) - 6 * scale, self._down(y) - 6 * scale
            place = f"translate({_number(left)} {_number(top)}) scale({scale:g})"
            style = f"fill: {colour}{_opacity(opacity)}"
            self._drawn.append({"d": SHAPES[marker], "style": style, "place": place})

    def beyond(self, value: float, until: float) -> None:
        """Mark a value of the x axis as the limit; up to `until`, it is crossed."""
        low, high = self._y.low, self._y.high
        self.area([(value, low), (value, high), (until, high), (until, low)], ALARM, 0.12)
        self.line([(value, low), (value, high)], ALARM, 1.2, dash=LIMIT)

    def svg(self) -> str:
        """The picture as a fragment of HTML."""
        x, y = self._x, self._y
        text = (
            templates.environment()
            .get_template("picture.svg.j2")
            .render(
                width=_WIDTH,
                height=self._height,
                left=self._left,
                top=_TOP,
                wide=self._wide,
                tall=round(self._tall, 2),
                areas=self._areas,
                drawn=self._drawn,
                columns=[_number(self._across(value)) for value, _ in x.ticks if x.grid],
                lines=[_number(self._down(value)) for value, _ in y.ticks if y.grid],
                below=[(_number(self._left + self._across(value)), text) for value, text in x.ticks],
                beside=[(round(_TOP + self._down(value), 2), text) for value, text in y.ticks],
                x_title=x.title,
                y_title=y.title,
            )
        )
        return text.replace("\n", "")

    def _path(self, points: Points) -> str:
        return "M" + "L".join(f"{_number(self._across(x))} {_number(self._down(y))}" for x, y in points)

    def _across(self, value: float) -> float:
        return self._x.share(value) * self._wide

    def _down(self, value: float) -> float:
        return (1 - self._y.share(value)) * self._tall


def _logarithm(value: float) -> float:
    return math.log(max(value, sys.float_info.min))


def _number(value: float) -> str:
    return f"{round(value, 2):g}"


def _opacity(value: float) -> str:
    return "" if value == 1 else f"; opacity: {value:g}"
