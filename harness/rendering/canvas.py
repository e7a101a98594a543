"""Tools for pictures: SVG by matplotlib, in the colours of the page, small enough for a phone.

matplotlib is imported with the first picture: that takes longer than all else that draws a report.

Names that a candidate chose never pass through matplotlib: it draws placeholders, which are replaced by the escaped
names afterwards.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from io import StringIO
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: The most bytes of SVG in one page. A report of 20,000 cells has more charts than anybody looks at.
BUDGET = 1_200_000
_DPI = 72.0
_WIDTH, _LEFT, _RIGHT = 400.0, 138.0, 14.0
_LABEL = 22
#: The tallest picture in points: 200 rows.
_TALLEST = 4000.0
#: Placeholder colours, replaced by the page's CSS variables, which matplotlib does not know.
INK, MUTED, GRID, ALARM = "#000001", "#000002", "#000003", "#000004"
SERIES = tuple(f"#00001{number}" for number in range(6))
_VARIABLES = {INK: "--ink", MUTED: "--muted", GRID: "--line", ALARM: "--fail"} | {
    colour: f"--series-{number}" for number, colour in enumerate(SERIES)
}
MARKERS = ("o", "s", "^", "D", "v", "P")
DASHES = ("-", (0, (4, 2)), (0, (1, 1.5)))
_STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "font.family": "DejaVu Sans",
    "font.size": 10,
    "text.color": INK,
    "text.parse_math": False,
    "axes.edgecolor": MUTED,
    "axes.labelcolor": MUTED,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "grid.color": GRID,
    "grid.linewidth": 0.8,
    "path.simplify": True,
}


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
    """A picture that nobody could read, and that would take minutes to draw."""


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


def style() -> AbstractContextManager[None]:
    """Within it, pictures have the style of the page."""
    import matplotlib as mpl

    found: AbstractContextManager[None] = mpl.rc_context(_STYLE)
    return found


def canvas(height: float, left: float = _LEFT) -> tuple[Figure, Axes]:
    """An empty picture of that height, with room for labels on the left, both in points. Raises TooTallError."""
    from matplotlib.figure import Figure

    if height > _TALLEST:
        raise TooTallError(f"{height:.0f} points")
    figure = Figure(figsize=(_WIDTH / _DPI, height / _DPI), dpi=_DPI)
    figure.patch.set_visible(False)
    bottom, top = 38.0, 8.0
    axes = figure.add_axes((left / _WIDTH, bottom / height, 1 - (left + _RIGHT) / _WIDTH, 1 - (bottom + top) / height))
    axes.patch.set_visible(False)
    axes.tick_params(length=0)
    return figure, axes


def mark(number: int) -> str:
    """The placeholder for the name of that number."""
    return f"@{number}@"


def svg(figure: Figure, salt: str, names: Sequence[str]) -> str:
    """The picture as a fragment of HTML: its colours are the page's, its names escaped."""
    import matplotlib as mpl

    drawn = StringIO()
    with mpl.rc_context({"svg.hashsalt": salt}):
        figure.savefig(drawn, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    text = drawn.getvalue()
    text = text[text.index("<svg") :]
    for pattern, instead in _PRUNED:
        text = re.sub(pattern, instead, text, flags=re.DOTALL)
    for colour, variable in _VARIABLES.items():
        text = text.replace(colour, f"var({variable})")
    short = [name if len(name) <= _LABEL else f"{name[: _LABEL - 1]}…" for name in names]
    return re.sub(r"@(\d+)@", lambda mark: html.escape(short[int(mark[1])]), text)


#: Parts that a picture inside a page does not need: it uses the page's font, and nothing refers to its parts.
_PRUNED = (
    (r"<metadata>.*?</metadata>|<!--.*?-->|<defs>\s*<style.*?</style>\s*</defs>", ""),
    (r"\s+id=\"(?!p[\da-f]{10}|m[\da-f]{10})[^\"]*\"", ""),
    (r"<svg [^>]*?viewBox=\"([^\"]*)\"[^>]*>", r'<svg viewBox="\1" aria-hidden="true" focusable="false">'),
    (r"font-size: [^;\"]*; font-family: [^;\"]*; ", ""),
    (r" transform=\"rotate\(-0 [^\"]*\"", ""),
    (r"\s*\n\s*", " "),
    (r"> <", "><"),
    (r"(\d\.\d\d)\d+", r"\1"),
)
