"""The data of a report's page for its script: the cells as JSON, compressed with gzip, as base64.

`page/data.js` decompresses it with the browser's own DecompressionStream.
"""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from harness.rendering import facts
from harness.rendering.causes import causes
from harness.rendering.marks import cut
from harness.report import figures
from harness.report.cell import AXES, FAIL, NO_EVIDENCE, UNTESTED, WORST_FIRST, Cell
from harness.report.levels import counted, is_required, required
from harness.report.report import Report, jsonable


def ordered(report: Report) -> list[Cell]:
    """The cells in the order of the suite's own names."""
    axes = {name: facts.axis(report, name) for name in AXES}
    index = {name: {value: place for place, value in enumerate(values)} for name, values in axes.items()}
    return sorted(report.cells, key=lambda cell: tuple(index[name][getattr(cell, name)] for name in AXES))


def payload(report: Report, cells: Sequence[Cell]) -> dict[str, Any]:
    """The cells in order, with the names, counts and orders that the page needs."""
    known = {found.name: found for found in report.suite.properties}
    return {
        "axes": {name: facts.axis(report, name) for name in AXES},
        "verdicts": list(WORST_FIRST),
        "untested": list(UNTESTED),
        "views": report.suite.views,
        "claims": {name: found.claim for name, found in known.items()},
        "strength": {name: [found.noticed, found.asked, found.faults] for name, found in known.items() if found.asked},
        "backends": list(report.suite.backends),
        "commit": report.environment["commit"],
        "levels": {name: found.level for name, found in known.items()},
        "required": list(required(report.required)),
        "causes": _causes(report, cells),
        "cells": [{**_short(jsonable(asdict(cell))), "used": _share(figures.used(cell))} for cell in cells],
    }


def _causes(report: Report, cells: Sequence[Cell]) -> list[list[int]]:
    """The places of cells that failed or lack evidence at a required level, by cause; failures come first."""
    place = {cell.key: number for number, cell in enumerate(cells)}
    asked = [
        (verdict, cell)
        for level, verdict, cell in counted(cells, report.suite)
        if is_required(level, report.required) and verdict in (FAIL, NO_EVIDENCE)
    ]
    failed = causes([cell for verdict, cell in asked if verdict == FAIL], report.suite)
    unknown: dict[tuple[str, ...], list[Cell]] = {}
    for verdict, cell in asked:
        if verdict == NO_EVIDENCE:
            unknown.setdefault((cell.operator, cell.backend, cell.property, cell.reason), []).append(cell)
    groups = [*(cause.cells for cause in failed), *unknown.values()]
    return [[place[cell.key] for cell in group] for group in groups]


def _short(value: Any) -> Any:
    """The value with every text cut: a candidate may have written megabytes."""
    match value:
        case str():
            return cut(value)
        case dict():
            return {name: _short(part) for name, part in value.items()}
        case list():
            return [_short(part) for part in value]
    return value


def packed(report: Report, cells: Sequence[Cell]) -> str:
    """The payload as text; the same report gives the same text."""
    text = json.dumps(payload(report, cells), separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode()


def _share(value: float | None) -> float | None:
    """JSON has no infinity: an infinite error becomes the largest float."""
    return None if value is None else float(f"{min(value, 1e300):.4g}")
