"""Draw the figures of docs/method.md from a record: `python -m tools.study.plot results/cpu/method.json`."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import matplotlib as mpl

from tools.study.method import GRADES, LARGE, POOLED, SMALL, interval, tally

FOLDER = Path("docs/method")
#: Okabe and Ito's colours, which colour-blind readers can distinguish; shapes and dashes differ too.
LOOKS = {
    "ours": ("#0072B2", "o", "-"),
    "assert_close": ("#D55E00", "s", "--"),
    "twice eager": ("#009E73", "^", "-."),
    "allclose 1e-2": ("#CC79A7", "v", ":"),
    "allclose 1e-4": ("#E69F00", "D", (0, (1, 1))),
    "allclose 1e-2, gradients": ("#56B4E9", "P", (0, (5, 1))),
}
DETECTED, ALARMED = "#0072B2", "#D55E00"


def _rate(record: dict[str, Any], dtype: str, group: str, judge: str, sizes: Iterable[str], only: str = "") -> Any:
    """(rate, its interval) in percent."""
    k, n = tally(record, dtype, group, judge, sizes, only)
    return 100 * k / max(n, 1), [100 * bound for bound in interval(k, n)]


def rates(record: dict[str, Any]) -> Any:
    """False alarms and detections: a row of panels for single calls, a row for pools, a column for each dtype."""
    from matplotlib import pyplot

    dtypes, judges = list(record["counts"]), list(record["judges"])
    figure, panels = pyplot.subplots(2, len(dtypes), figsize=(11, 4.6), sharex=True, sharey=True)
    for row, (sizes, title) in enumerate((((SMALL, LARGE), "single calls"), ((POOLED,), "pooled"))):
        for panel, dtype in zip(panels[row], dtypes, strict=True):
            for group, colour, marker, label, shift in (
                ("controls", ALARMED, "x", "right ones rejected", 0.14),
                ("faults", DETECTED, "o", "wrong ones rejected", -0.14),
            ):
                for place, judge in enumerate(judges):
                    rate, (low, high) = _rate(record, dtype, group, judge, sizes)
                    panel.plot([low, high], [place + shift] * 2, color=colour, linewidth=1.5)
                    panel.plot(
                        rate,
                        place + shift,
                        marker,
                        color=colour,
                        markersize=6,
                        label=None if place else label,
                        zorder=3,
                    )
            panel.set_title(f"{dtype}, {title}", fontsize=9)
            panel.grid(axis="x", color="0.9")
    for row in panels:
        row[0].set_yticks(range(len(judges)), judges, fontsize=8)
        for panel in row:
            panel.set_xticks([0, 50, 100], ["0", "50", "100"], fontsize=8)
    panels[0][0].invert_yaxis()
    for panel in panels[1]:
        panel.set_xlabel("% (bars: 95% interval)", fontsize=8)
    figure.legend(*panels[0][0].get_legend_handles_labels(), loc="upper center", ncols=2, frameon=False, fontsize=9)
    figure.tight_layout(rect=(0, 0, 1, 0.94))
    return figure


def graded(record: dict[str, Any]) -> Any:
    """Detection of a relative error s in one gate's gradient; at s = 0, false alarms."""
    from matplotlib import pyplot

    dtypes = list(record["counts"])
    figure, panels = pyplot.subplots(1, len(dtypes), figsize=(11, 3.6), sharey=True)
    places = range(len(GRADES) + 1)

    def curve(dtype: str, judge: str, sizes: tuple[str, ...]) -> list[float]:
        found = [_rate(record, dtype, "controls", judge, sizes)[0]]
        return found + [_rate(record, dtype, "graded", judge, sizes, f"{s:g} ")[0] for s in GRADES]

    for panel, dtype in zip(panels, dtypes, strict=True):
        for judge in reversed(record["judges"]):
            colour, marker, dashes = LOOKS[judge]
            panel.plot(
                places,
                curve(dtype, judge, (POOLED,)),
                color=colour,
                marker=marker,
                linestyle=dashes,
                linewidth=3 if judge == "ours" else 1.5,
                markersize=5,
                label=judge,
            )
        panel.plot(
            places, curve(dtype, "ours", (SMALL,)), color="0.45", linewidth=1, marker=".", label="ours, one small call"
        )
        panel.set_title(f"{dtype}, pooled", fontsize=9)
        panel.set_xticks(list(places), ["0", *(f"{100 * s:g}" for s in GRADES)], fontsize=8)
        panel.set_xlabel("error of one gate's gradient, %", fontsize=8)
        panel.grid(color="0.92")
    panels[0].set_ylabel("rejected, %", fontsize=8)
    panels[0].tick_params(labelsize=8)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="upper center", ncols=4, frameon=False, fontsize=8)
    figure.tight_layout(rect=(0, 0, 1, 0.86))
    return figure


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("record", type=Path)
    record = json.loads(parser.parse_args().record.read_text())
    mpl.use("svg")
    # The same record gives the same file.
    mpl.rcParams.update({"svg.hashsalt": "method", "font.family": "DejaVu Sans", "axes.spines.top": False})
    mpl.rcParams.update({"axes.spines.right": False, "savefig.facecolor": "white"})
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, figure in (("rates", rates(record)), ("graded", graded(record))):
        figure.savefig(FOLDER / f"{name}.svg", metadata={"Date": None})


if __name__ == "__main__":
    main()
