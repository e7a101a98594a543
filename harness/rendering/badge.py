"""A report as a badge, in the format of https://shields.io/badges/endpoint-badge."""

from __future__ import annotations

from typing import Any

from harness.rendering import sentence
from harness.report.cell import DECLARED, FAIL, NO_EVIDENCE, NOT_RUN, PASS
from harness.report.report import Report

_COLOURS = {PASS: "brightgreen", FAIL: "red", NO_EVIDENCE: "yellow", DECLARED: "yellow", NOT_RUN: "lightgrey"}


def badge(report: Report, label: str = "conformance") -> dict[str, Any]:
    """The required levels in a few words: `values ✓ gradients ✓ safe ✓`, or what is wrong."""
    verdict, _ = sentence.outcome(report)
    return {
        "schemaVersion": 1,
        "label": label,
        "message": sentence.short(report),
        "color": _COLOURS[verdict],
        "isError": verdict == FAIL,
    }
