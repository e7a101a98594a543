"""A report as a badge, in the format of https://shields.io/badges/endpoint-badge."""

from __future__ import annotations

from typing import Any

from harness.rendering import facts
from harness.report.cell import FAIL, NO_EVIDENCE, NOT_RUN, PASS, UNTESTED
from harness.report.report import Report

_COLOURS = {PASS: "brightgreen", FAIL: "red", NO_EVIDENCE: "yellow", NOT_RUN: "lightgrey"}


def badge(report: Report, label: str = "conformance") -> dict[str, Any]:
    """The outcome, and the number of cells that were not tested."""
    verdict, sentence = facts.outcome(report)
    untested = sum(cell.verdict in UNTESTED for cell in report.cells)
    message = f"{report.count(PASS)} pass" if verdict == PASS else sentence
    if untested and verdict in (PASS, FAIL):
        message += f", {untested} not tested"
    return {
        "schemaVersion": 1,
        "label": label,
        "message": message,
        "color": _COLOURS[verdict],
        "isError": verdict == FAIL,
    }
