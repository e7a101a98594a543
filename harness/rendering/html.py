"""One HTML file with a whole report: it needs no network and no other file.

The cells are stored as compressed JSON and drawn only when shown, so that a report of 20,000 cells opens at once. Text
of a report never becomes markup: Jinja escapes what it writes, the scripts in `page/` create text nodes only, and the
page's security policy allows one script, by its digest.

A page is a list of sections (`page/report.html.j2`), each drawn from the cells by a script or written by Jinja. A new
kind of data, such as timings, gets its own section.
"""

from __future__ import annotations

import base64
import hashlib
from typing import Any

from markupsafe import Markup

from harness.rendering import charts, facts, speed, templates
from harness.rendering.canvas import SHAPES, Charts
from harness.rendering.payload import ordered, packed
from harness.rendering.record import verdict_record
from harness.report import figures
from harness.report.cell import DECLARED, FAIL, NO_EVIDENCE, PASS, UNTESTED
from harness.report.levels import LEVELS, counted, is_required
from harness.report.report import Report

#: The parts of the page's script in order: each uses only parts before it.
_SCRIPTS = ("data", "elements", "filter", "evidence", "matrix", "lists", "views", "main")
_STYLES = ("theme", "layout", "parts", "print")
#: Up to so many implementations have a sentence each; more are a matrix.
FEW = 4
#: Facts of the environment by subject. All others follow under their own names.
_SUBJECTS = {
    "Machine": ("gpu", "gpus", "architecture", "driver", "cpu", "threads", "system"),
    "Software": ("torch", "torch_git", "cuda", "cudnn", "python"),
    "Compilers": ("compiler", "nvcc", "flags"),
    "Arithmetic": ("tf32",),
    "Suite": ("commit", "dirty", "time"),
}
_NAMES = {
    "cpu": "CPU",
    "cuda": "CUDA",
    "cudnn": "cuDNN",
    "dirty": "local changes",
    "gpu": "GPU",
    "gpus": "GPUs",
    "tf32": "TF32",
    "torch_git": "torch's commit",
}


def page(report: Report, bench: dict[str, Any] | None = None) -> str:
    """The report as a page; with a bench record (see `harness.bench.record.read`) also the cost of the backends."""
    cells = ordered(report)
    verdict = verdict_record(report)
    script = "\n".join(templates.part(f"{name}.js") for name in _SCRIPTS)
    digest = base64.b64encode(hashlib.sha256(f"\n{script}\n".encode()).digest()).decode()
    return (
        templates.environment()
        .get_template("report.html.j2")
        .render(
            accuracy=_figures(charts.accuracy(report)),
            backends=facts.axis(report, "backend"),
            commit=facts.commit(report),
            partial=report.why_partial(),
            tested={name: report.count(name) for name in (PASS, FAIL)},
            drift=_figures(charts.drift(report)),
            environment=_facts(report.environment),
            forms=sum(len(figures.unasked(cell)) for cell in cells),
            holes=facts.holes(cells),
            judged=facts.judged(report),
            levels=LEVELS,
            never_asked=facts.never_asked(report),
            operators=facts.axis(report, "operator"),
            payload=packed(report, cells),
            place=facts.place(report),
            policy=f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; img-src data:",
            script=Markup(script),
            shapes=SHAPES,
            several=len(verdict["implementations"]) > FEW,
            speed=_speed(report, bench) if bench else None,
            style=Markup("\n".join(templates.part(f"{name}.css") for name in _STYLES)),
            time=report.environment.get("time"),
            ulps=_figures(charts.ulps(report)),
            support=_support(report),
            untested={name: report.count(name) for name in UNTESTED},
            verdict=verdict,
            wrong=any(one["verdict"] in (FAIL, NO_EVIDENCE) for one in verdict["implementations"]),
        )
    )


def _support(report: Report) -> dict[str, int]:
    """How many cells and properties are not supported, and not required."""
    lacking = [
        cell
        for level, found, cell in counted(report.cells, report.suite)
        if not is_required(level, report.required) and found in (FAIL, NO_EVIDENCE, DECLARED)
    ]
    return {"cells": len(lacking), "properties": len({cell.property for cell in lacking})}


def _speed(report: Report, bench: dict[str, Any]) -> dict[str, Any]:
    """The template's data from a bench record, which may be from another machine than the report."""
    timed = Report(bench["environment"], True, ())
    reasons: dict[str, list[str]] = {}
    for lacking in bench["missing"]:
        names = [str(lacking[name] or f"every {name}") for name in ("operator", "backend", "device", "dtype")]
        reasons.setdefault(str(lacking["reason"]), []).append(" / ".join(names))
    return {
        "place": facts.place(timed),
        "commit": facts.commit(timed),
        "elsewhere": facts.place(timed) != facts.place(report),
        "ratios": _figures(speed.ratios(bench, report.suite.backends)),
        "roofline": _figures(speed.roofline(bench, report.suite.backends)),
        "times": _figures(speed.times(bench, report.suite.backends)),
        "missing": reasons,
    }


def _figures(charts: Charts) -> dict[str, Any]:
    """The template's data for the pictures. Their text is escaped, see `harness.rendering.canvas`."""
    legend = dict.fromkeys(entry for chart in charts.drawn for entry in chart.legend)
    return {
        "drawn": [{**vars(chart), "svg": Markup(chart.svg)} for chart in charts.drawn],
        "left_out": charts.left_out,
        "legend": list(legend),
    }


def _facts(environment: dict[str, Any]) -> dict[str, list[tuple[str, list[tuple[str, str]]]]]:
    """Subject -> (fact, [(part of it, its value)]). "Not recorded" and "could not be found out" are distinct values."""
    named = {name for names in _SUBJECTS.values() for name in names}
    subjects = {**_SUBJECTS, "Other": tuple(name for name in environment if name not in named)}
    return {
        subject: [(_NAMES.get(name, name), _parts(environment.get(name, "not recorded"))) for name in names]
        for subject, names in subjects.items()
        if names
    }


def _parts(value: Any) -> list[tuple[str, str]]:
    if isinstance(value, dict):
        return [(str(name), _word(part)) for name, part in value.items()] or [("", "none")]
    return [("", _word(value))]


def _word(value: Any) -> str:
    match value:
        case None:
            return "not known"
        case bool():
            return "yes" if value else "no"
        case dict():
            return ", ".join(f"{name} {_word(part)}" for name, part in value.items())
    return str(value)
