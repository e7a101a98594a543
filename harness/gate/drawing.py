"""A gate record for people: a table, Markdown for a pull request, and a plot of the ratios."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from harness.gate.sampling import KINDS
from harness.gate.verdict import (
    BROKEN,
    EXIT_CODES,
    FAILED,
    FASTER,
    INCONCLUSIVE,
    MORE_MEMORY,
    NOT_RUN,
    NOT_SLOWER,
    PASSED,
    SLOWER,
    SUSPECT,
    VERDICTS,
)
from harness.rendering.tables import plain

#: A mark for each verdict, so that colour is never the only difference.
MARKS = {
    **dict.fromkeys((SLOWER, MORE_MEMORY, BROKEN, SUSPECT), "✗"),
    **dict.fromkeys((FASTER, NOT_SLOWER), "✓"),
    INCONCLUSIVE: "?",
    NOT_RUN: "-",
}
STYLES = {
    **dict.fromkeys((SLOWER, MORE_MEMORY, BROKEN, SUSPECT), "bold red"),
    INCONCLUSIVE: "yellow",
    NOT_RUN: "dim",
}
_OVERALL = {PASSED: "not slower", FAILED: "**fails**", INCONCLUSIVE: "**inconclusive**, which is no pass"}
#: Okabe and Ito's colours, which colour-blind readers can distinguish.
_COLOURS = {"head": "#0072B2", "same": "#009E73", "planted": "#D55E00"}
_LABELS = {"head": "head over base", "same": "base over itself", "planted": "planted 10% over base"}
_HEAD = ["", "benchmark", "verdict", "head / base", "base / base", "planted / base"]


def _lines(record: dict[str, Any]) -> list[list[str]]:
    found = []
    for result in sorted(record["results"], key=lambda r: VERDICTS.index(r["verdict"])):
        ratios = [_ratio(result["estimates"].get(kind)) for kind in KINDS]
        found.append([MARKS[result["verdict"]], result["benchmark"], result["verdict"], *ratios])
    return found


def _ratio(found: dict[str, float] | None) -> str:
    return "-" if found is None else f"{found['ratio']:.3f} ({found['low']:.3f}-{found['high']:.3f})"


def _notes(record: dict[str, Any]) -> list[str]:
    """All reasons that the table does not show."""
    in_table = {NOT_SLOWER, FASTER}
    notes = [
        f"{r['benchmark']}: {r['verdict']}: {r['reason']}" for r in record["results"] if r["verdict"] not in in_table
    ]
    notes += [f"{fate['benchmark']}: {fate['fate']}: {fate['reason']}" for fate in record["fates"]]
    return notes + list(record["wrong"])


def _head(record: dict[str, Any]) -> str:
    """Whether head was the commit, or something else."""
    state = {True: ", with local changes,", None: ", perhaps with local changes,"}
    return state.get(record["environment"].get("dirty", False), "")


def show(record: dict[str, Any], console: Console) -> None:
    """The table and the reasons."""
    title = f"{record['head'][:10]}{_head(record)} against {record['base'][:10]}"
    table = Table(title=title, title_justify="left")
    for name in _HEAD:
        table.add_column(name)
    for line in _lines(record):
        table.add_row(*line, style=STYLES.get(line[2]))
    console.print(table)
    for note in _notes(record):
        console.print(f"  {note}", markup=False, highlight=False, soft_wrap=True)
    verdict = record["verdict"]
    console.print(
        f"\ngate: {verdict} (exit code {EXIT_CODES[verdict]})", style=None if verdict == PASSED else "bold red"
    )


def markdown(record: dict[str, Any]) -> str:
    """A comment for a pull request: the verdict first, then the problems, then the rest, folded."""
    machine, plan = record["environment"], record["plan"]
    rows = ["| " + " | ".join(map(plain, line)) + " |" for line in _lines(record)]
    lines = [
        f"### Gate: {_OVERALL[record['verdict']]}",
        "",
        f"`{record['head'][:10]}`{_head(record)} against `{record['base'][:10]}` "
        f"on {plain(machine['gpu'] or machine['cpu'] or '?')}, "
        f"torch {machine['torch']}: {plan['launches']} launches of {plan['pairs']} ABBA pairs.",
        "",
        *(f"- {plain(note)}" for note in _notes(record)),
        "",
        "<details><summary>All ratios of times, with bounds of 99%</summary>",
        "",
        f"| {' | '.join(_HEAD)} |",
        "|" + "---|" * len(_HEAD),
        *rows,
        "",
        "</details>",
    ]
    return "\n".join(lines) + "\n"


def plot(record: dict[str, Any], path: Path) -> None:
    """The distribution of the pairs of each comparison, one line for each benchmark; needs no display."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    seen = [entry for entry in record["samples"] if any(entry["ratios"].values())]
    mpl.rcParams["svg.hashsalt"] = "gate"  # the same record gives the same file
    figure = Figure(figsize=(9, 1.2 + 0.45 * max(1, len(seen))))
    panel = figure.subplots()
    for place, entry in enumerate(seen):
        for shift, kind in zip((-0.25, 0, 0.25), KINDS, strict=True):
            values = [100 * (ratio - 1) for launch in entry["ratios"][kind] for ratio in launch]
            label = None if place else _LABELS[kind]
            heights = [place + shift] * len(values)
            panel.plot(values, heights, "|", color=_COLOURS[kind], alpha=0.6, label=label)
    panel.axvline(0, color="0.6", linewidth=0.8)
    panel.set_yticks(range(len(seen)), [entry["benchmark"] for entry in seen], fontsize=7)
    panel.set_xlabel("slower than base by, %; a stroke is an ABBA pair", fontsize=8)
    panel.set_xscale("symlog", linthresh=15)
    panel.invert_yaxis()
    if seen:
        panel.legend(fontsize=8, loc="lower right")
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)
