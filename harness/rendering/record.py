"""The verdict of a report as JSON, for other tools: its sentences and standings, ready to be shown."""

from __future__ import annotations

from typing import Any

from harness.rendering import sentence
from harness.report.levels import is_required, standings
from harness.report.report import Report


def verdict_record(report: Report) -> dict[str, Any]:
    """The verdict of the run, and for each implementation its sentence and its five levels.

    `verdict` is one of the five verdicts of a cell, for the required levels; `partial` says why cells are missing.
    """
    verdict, said = sentence.outcome(report)
    return {
        "verdict": verdict,
        "sentence": said,
        "short": sentence.short(report),
        "required": report.required,
        "partial": report.why_partial(),
        "implementations": [_implementation(one) for one in sentence.implementations(report)],
    }


def _implementation(one: sentence.Implementation) -> dict[str, Any]:
    return {
        "operator": one.operator,
        "backend": one.backend,
        "devices": one.suite.ordered("device", (cell.device for cell in one.cells)),
        "verdict": one.verdict,
        "sentence": one.sentence,
        "levels": [
            {
                "level": found.level,
                "required": is_required(found.level, one.required),
                "verdict": found.verdict,
                "passed": found.passed,
                "tested": found.tested,
            }
            for found in standings(one.cells, one.suite)
        ],
    }
