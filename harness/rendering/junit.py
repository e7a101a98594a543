"""A report as JUnit XML, which every CI system can show: one test case for each cell.

Each operator, backend and device is a suite, with a suite for each level in it. `no-evidence` becomes an error, not a
pass; `declared` and `not-run` are skipped, with their reasons; so is what fails above the required level. A partial
report has one more case, an error, so that it never looks complete.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from xml.etree import ElementTree

from harness.rendering import facts
from harness.rendering.marks import cut, first_line
from harness.report.cell import DECLARED, FAIL, NO_EVIDENCE, NOT_RUN, Cell
from harness.report.levels import LEVELS, is_required, level_of
from harness.report.report import Report

_ELEMENTS = {FAIL: "failure", NO_EVIDENCE: "error", DECLARED: "skipped", NOT_RUN: "skipped"}
_NOT_SUPPORTED = "not supported, and not required"
#: Characters that XML 1.0 forbids, even escaped.
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def clean(text: str) -> str:
    """The text without characters that XML forbids, cut if it is very long."""
    return _FORBIDDEN.sub("\ufffd", cut(text))


def junit(report: Report) -> str:
    """The document: a suite for each operator, backend and device, in it one for each level."""
    suites: dict[str, dict[str, list[Cell]]] = {}
    for cell in report.cells:
        levels = suites.setdefault(clean(f"{cell.operator}.{cell.backend}.{cell.device}"), {})
        level = cell.level if cell.verdict == FAIL and cell.level else level_of(cell, report.suite)
        levels.setdefault(level, []).append(cell)
    root = ElementTree.Element("testsuites", name="conformance")
    for name, levels in suites.items():
        whole = [(level, cell) for level, cells in levels.items() for cell in cells]
        suite = ElementTree.SubElement(root, "testsuite", {"name": name, **_counts(whole, report.required)})
        properties = ElementTree.SubElement(suite, "properties")
        for fact, value in (("machine", facts.place(report)), ("commit", facts.commit(report))):
            ElementTree.SubElement(properties, "property", name=fact, value=clean(value))
        for level in sorted(levels, key=LEVELS.index):
            cells = [(level, cell) for cell in levels[level]]
            counts = _counts(cells, report.required)
            inner = ElementTree.SubElement(suite, "testsuite", {"name": f"{name}.{level}", **counts})
            for cell in levels[level]:
                _case(inner, name, cell, is_required(level, report.required))
    if not report.complete:
        suite = ElementTree.SubElement(root, "testsuite", name="run", tests="1", failures="0", errors="1", skipped="0")
        case = ElementTree.SubElement(suite, "testcase", classname="run", name="comes to its end", time="0")
        ElementTree.SubElement(case, "error", message=f"{report.why_partial()}: cells are missing")
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _element(cell: Cell, required: bool) -> str | None:
    found = _ELEMENTS.get(cell.verdict)
    return found if required or found is None else "skipped"


def _counts(cells: Sequence[tuple[str, Cell]], required: str) -> dict[str, str]:
    elements = [_element(cell, is_required(level, required)) for level, cell in cells]
    counts = {"tests": len(cells), "failures": elements.count("failure"), "errors": elements.count("error")}
    counts["skipped"] = elements.count("skipped")
    seconds = sum(_seconds(cell) for _, cell in cells)
    return {name: str(count) for name, count in counts.items()} | {"time": f"{seconds:.4f}"}


def _seconds(cell: Cell) -> float:
    """A finite number that is not negative: JUnit has no other."""
    try:
        seconds = float(cell.seconds)
    except (TypeError, ValueError, OverflowError):
        return 0.0
    return seconds if math.isfinite(seconds) and 0 <= seconds < 1e12 else 0.0


def _case(suite: ElementTree.Element, name: str, cell: Cell, required: bool) -> None:
    case = ElementTree.SubElement(
        suite,
        "testcase",
        classname=clean(f"{name}.{cell.dtype}"),
        name=clean(cell.property),
        time=f"{_seconds(cell):.4f}",
    )
    element = _element(cell, required)
    if element is None:
        return
    kind = cell.verdict if required or cell.verdict not in (FAIL, NO_EVIDENCE) else _NOT_SUPPORTED
    inner = ElementTree.SubElement(
        case, element, message=clean(f"{kind}: {first_line(cell.reason)}"), type=cell.verdict
    )
    script = cell.figures.get("reproducer")
    inner.text = clean(cell.reason)
    if isinstance(script, str):
        inner.text += f"\n\nThis script reproduces it:\n\n{clean(script)}"
