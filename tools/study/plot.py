"""Draw the figures of docs/method.md from a record: `python -m tools.study.plot results/cpu/method.json`."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import matplotlib as mpl

from tools.study.candidates import CONTROLS, FAULTS, GRADED, GRADES
from tools.study.tables import OURS, POOLED, SINGLE, SMALL, dtypes_of, interval, tally

FOLDER = Path("docs/method")
#: Okabe and Ito's colours, which colour-blind readers can distinguish; shapes and dashes differ too.
LOOKS = {
    "ours": ("#0072B2", "o", "-"),
    "assert_close": ("#D55E00", "s", "--"),
    "twice eager": ("#009E73", "^", "-."),
    "allclose 1e-2": ("#CC79A7", "v", ":"),
    "allclose 1e-4": ("#E69F00", "D", (0, (1, 1))),
    "allclose 1e-2, gradients": ("#56B4E9", "P", (0, (5, 1))),
    "BLAS++": ("#000000", "X", "-"),
    "4 ULP": ("#8C564B", "<", "--"),
    "16 ULP": ("#7F7F7F", ">", "-."),
    "digits": ("#999933", "*", ":"),
}
DETECTED, ALARMED = "#0072B2", "#D55E00"


def _rate(record: dict[str, Any], group: str, judge: str, sizes: tuple[str, ...], **where: Any) -> Any:
    """(rate, its interval) in percent."""
    k, n = tally(record, group, judge, sizes, **where)
    return 100 * k / max(n, 1), [100 * bound for bound in interval(k, n)]


def rates(record: dict[str, Any]) -> Any:
    """False alarms and detections of all operators: a row for calls, a row for pools, a column for each dtype."""
    from matplotlib import pyplot

    dtypes, judges = dtypes_of(record), list(record["judges"])
    figure, panels = pyplot.subplots(2, len(dtypes), figsize=(11, 6), sharex=True, sharey=True)
    for row, (sizes, title) in enumerate(((SINGLE, "single calls"), ((POOLED,), "pooled"))):
        for panel, dtype in zip(panels[row], dtypes, strict=True):
            for group, colour, marker, label, shift in (
                (CONTROLS, ALARMED, "x", "right ones rejected", 0.14),
                (FAULTS, DETECTED, "o", "wrong ones rejected", -0.14),
            ):
                for place, judge in enumerate(judges):
                    rate, ends = _rate(record, group, judge, sizes, dtypes=(dtype,))
                    panel.plot(ends, [place + shift] * 2, color=colour, linewidth=1.5)
                    shown = None if place else label
                    panel.plot(rate, place + shift, marker, color=colour, markersize=6, label=shown, zorder=3)
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
    figure.tight_layout(rect=(0, 0, 1, 0.95))
    return figure


def graded(record: dict[str, Any]) -> Any:
    """Detection of a relative error s in one part of an operator; at s = 0, false alarms. A row for each operator."""
    from matplotlib import pyplot

    dtypes, operators = dtypes_of(record), list(record["operators"])
    size = (11, 2.3 * len(operators) + 0.8)
    figure, panels = pyplot.subplots(len(operators), len(dtypes), squeeze=False, figsize=size, sharex=True, sharey=True)
    for row, operator in zip(panels, operators, strict=True):
        for panel, dtype in zip(row, dtypes, strict=True):
            where = {"operators": (operator,), "dtypes": (dtype,)}
            _curves(panel, record, where)
            panel.set_title(f"{operator}, {dtype}", fontsize=9)
            panel.set_xticks(range(len(GRADES) + 1), ["0", *(f"{100 * s:g}" for s in GRADES)], fontsize=8)
            panel.tick_params(labelsize=8)
            panel.grid(color="0.92")
        row[0].set_ylabel("rejected, %", fontsize=8)
    for panel in panels[-1]:
        panel.set_xlabel("error of one part, %", fontsize=8)
    handles, labels = panels[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="upper center", ncols=6, frameon=False, fontsize=8)
    figure.tight_layout(rect=(0, 0, 1, 0.93))
    return figure


def _curves(panel: Any, record: dict[str, Any], where: dict[str, Any]) -> None:
    """A line for each judge over pools, and one for ours over small calls."""

    def curve(judge: str, sizes: tuple[str, ...]) -> list[float]:
        found = [_rate(record, CONTROLS, judge, sizes, **where)[0]]
        return found + [_rate(record, GRADED, judge, sizes, only=f"{s:g} ", **where)[0] for s in GRADES]

    places = range(len(GRADES) + 1)
    for judge in reversed(record["judges"]):
        colour, marker, dashes = LOOKS[judge]
        wide = 3 if judge == OURS else 1.2
        look = {"color": colour, "marker": marker, "linestyle": dashes, "linewidth": wide, "markersize": 4}
        panel.plot(places, curve(judge, (POOLED,)), label=judge, **look)
    panel.plot(places, curve(OURS, (SMALL,)), color="0.45", linewidth=1, marker=".", label="ours, one small call")


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
