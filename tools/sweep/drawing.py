"""The heat maps of a sweep, and the points at which a rival is faster."""

from __future__ import annotations

from io import StringIO
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.colors import TwoSlopeNorm
from matplotlib.figure import Figure

from harness.rendering.tables import insert, plain
from tools.sweep.grid import GRIDS, Grid

DOCUMENT, PICTURES = Path("docs/performance.md"), Path("docs/performance")
#: The ratio below which a point is listed, and the ratios at the ends of the colours.
DARK, LOWEST, HIGHEST = 0.97, 0.5, 3.0
Row = dict[str, Any]


def rival(row: Row) -> tuple[str, dict[str, float]]:
    """The fastest rival, and how many times as fast as it the backend is."""
    name = min(row["ratios"], key=lambda name: row["ratios"][name]["median"])
    return name, row["ratios"][name]


def picture(grid: Grid, rows: list[Row]) -> str:
    """SVG: a map for each dtype and phase. Each point has the ratio to the fastest rival; above 1 is faster."""
    kinds = sorted({(row["dtype"], row["phase"]) for row in rows})
    (down, ups), (across, widths) = grid.rows, grid.columns
    style: dict[Any, Any] = {
        "svg.fonttype": "none",
        "font.size": 9,
        "svg.hashsalt": grid.operator,
    }
    with mpl.rc_context(style):
        figure = Figure(figsize=(4.6 * min(2, len(kinds)), 2.9 * ((len(kinds) + 1) // 2)), layout="constrained")
        places = figure.subplots((len(kinds) + 1) // 2, min(2, len(kinds)), squeeze=False).flat
        for axes, kind in zip(places, kinds, strict=False):
            found = {
                (row["sizes"][down], row["sizes"][across]): rival(row)[1]["median"]
                for row in rows
                if (row["dtype"], row["phase"]) == kind
            }
            table = [[found.get((up, width), float("nan")) for width in widths] for up in ups]
            axes.imshow(table, cmap="RdYlGn", norm=TwoSlopeNorm(1, LOWEST, HIGHEST), aspect="auto")
            for y, line in enumerate(table):
                for x, value in enumerate(line):
                    axes.text(x, y, "" if value != value else f"{value:.2f}", ha="center", va="center")
            axes.set_xticks(range(len(widths)), [str(width) for width in widths])
            axes.set_yticks(range(len(ups)), [str(up) for up in ups])
            axes.set_xlabel(across)
            axes.set_ylabel(down)
            axes.set_title(", ".join(kind))
        text = StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None})
    return text.getvalue()


def section(record: dict[str, Any], name: str) -> str:
    """The page's part about one sweep: the worst point, the points below DARK, and the picture."""
    machine, rows = record["environment"], record["rows"]
    worst = min(rows, key=lambda row: rival(row)[1]["median"])
    dark = sorted((row for row in rows if rival(row)[1]["high"] < DARK), key=lambda row: rival(row)[1]["median"])
    faster = sum(rival(row)[1]["low"] >= 1 for row in rows)
    lines = [
        f"**{record['operator']}: `{record['backend']}` against the fastest of its rivals, at {len(rows)} points on "
        f"{plain(machine['gpu'] or machine['cpu'])}**, torch {machine['torch']}.",
        "",
        f"It is at least as fast at {faster} points, by the whole interval. The worst point is {_point(worst)}.",
        "",
        f"![A ratio for each size: above 1, the backend is faster](performance/{Path(name).stem}.svg)",
        "",
    ]
    if dark:
        lines += [f"<details><summary>{len(dark)} points below {DARK} of the fastest rival</summary>", ""]
        lines += ["| point | ratio | us | us of the rival |", "|---|---|---|---|"]
        lines += [*(_line(row, record["backend"]) for row in dark), "", "</details>"]
    else:
        lines += [f"No point is below {DARK}."]
    lines += ["", *(f"- not timed: {plain(str(entry))}" for entry in record["missing"])]
    return "\n".join(lines).rstrip() + "\n"


def _point(row: Row) -> str:
    name, ratio = rival(row)
    sizes = " x ".join(str(size) for size in row["sizes"].values())
    return f"{sizes} in {row['dtype']}, {row['phase']}: {ratio['median']:.2f} of {name}"


def _line(row: Row, backend: str) -> str:
    name, ratio = rival(row)
    own, other = (1e6 * row["seconds"][who]["median"] for who in (backend, name))
    figure = f"{ratio['median']:.2f} ({ratio['low']:.2f}-{ratio['high']:.2f}) of {name}"
    return f"| {_point(row).split(':')[0]} | {figure} | {own:.3g} | {other:.3g} |"


def draw(record: dict[str, Any], path: Path, document: str) -> str:
    """Write the picture; the page with that record's section, which is added at the end if it is new."""
    PICTURES.mkdir(exist_ok=True)
    (PICTURES / f"{path.stem}.svg").write_text(picture(GRIDS[record["operator"]], record["rows"]), encoding="utf-8")
    return insert(section(record, str(path)), document, str(path))
