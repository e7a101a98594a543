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
from harness.report import figures
from harness.report.cell import AXES, UNTESTED, WORST_FIRST, Cell
from harness.report.report import Report, jsonable


def ordered(report: Report) -> list[Cell]:
    """The cells in the order of the suite's own names."""
    axes = {name: facts.axis(report, name) for name in AXES}
    index = {name: {value: place for place, value in enumerate(values)} for name, values in axes.items()}
    return sorted(report.cells, key=lambda cell: tuple(index[name][getattr(cell, name)] for name in AXES))


def payload(report: Report, cells: Sequence[Cell]) -> dict[str, Any]:
    """The cells in order, with the names, counts and orders that the page needs."""
    place = {cell.key: number for number, cell in enumerate(cells)}
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
        "failures": [place[cell.key] for cell in facts.failures(cells)],
        "cells": [{**jsonable(asdict(cell)), "used": _share(figures.used(cell))} for cell in cells],
    }


def packed(report: Report, cells: Sequence[Cell]) -> str:
    """The payload as text; the same report gives the same text."""
    text = json.dumps(payload(report, cells), separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode()


def _share(value: float | None) -> float | None:
    """JSON has no infinity: an infinite error becomes the largest float."""
    return None if value is None else float(f"{min(value, 1e300):.4g}")
