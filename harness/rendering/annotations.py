"""A report as workflow commands of GitHub Actions, which shows them at a line of a file.

The format: https://docs.github.com/actions/reference/workflow-commands-for-github-actions. Names and reasons come from
a candidate: none of them ends a command or begins another one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from harness.rendering.causes import Cause, causes
from harness.rendering.marks import cut, printable
from harness.report.cell import FAIL, NO_EVIDENCE, Cell
from harness.report.levels import counted, exit_reason, is_required
from harness.report.report import Report

#: GitHub shows ten errors and ten warnings of a step.
MOST = 10
_LONGEST = 4_000


@dataclass(frozen=True)
class SourcePlace:
    """A line of a file."""

    file: str
    line: int


def commands(report: Report, places: Mapping[tuple[str, str], SourcePlace]) -> str:
    """One command for each cause of failure at the required levels, a warning for each question that stayed open.

    `places` has the line of each (operator, backend). If the run is not green for another reason, one error says why.
    """
    wrong = _required(report, FAIL)
    found = [_command("error", cause, places) for cause in causes(wrong, report.suite)]
    found = _at_most(found, "error")
    if not wrong and exit_reason(report):
        found.append(f"::error title=conformance::{_data(exit_reason(report))}")
    open_questions = [Cause("", "", (cell,)) for cell in _required(report, NO_EVIDENCE)]
    found += _at_most([_command("warning", cause, places) for cause in open_questions], "warning")
    return "".join(f"{line}\n" for line in found)


def _required(report: Report, verdict: str) -> list[Cell]:
    return [
        cell
        for level, found, cell in counted(report.cells, report.suite)
        if found == verdict and is_required(level, report.required)
    ]


def _at_most(commands: list[str], kind: str) -> list[str]:
    if len(commands) <= MOST:
        return commands
    more = len(commands) - MOST + 1
    return [*commands[: MOST - 1], f"::{kind} title=conformance::and {more} more causes: see the report"]


def _command(kind: str, cause: Cause, places: Mapping[tuple[str, str], SourcePlace]) -> str:
    first = cause.cells[0]
    place = places.get((first.operator, first.backend))
    names = ", ".join(cause.names("property")[:3])
    given = {"file": place.file, "line": str(place.line)} if place is not None else {}
    given["title"] = f"{first.operator} / {first.backend}: {names} ({', '.join(cause.names('dtype'))})"
    options = ",".join(f"{name}={_property(value)}" for name, value in given.items())
    return f"::{kind} {options}::{_data(first.reason)}"


def _data(text: str) -> str:
    """The message, as the format asks."""
    return printable(cut(text, _LONGEST)).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    """The value of an option."""
    return _data(cut(text, 300)).replace(":", "%3A").replace(",", "%2C")
