"""A report as JUnit XML, which every CI system can show: one test case for each cell.

`no-evidence` becomes an error, not a pass; `declared` and `not-run` are skipped, with their reasons. A partial report
has one more case, an error, so that it never looks complete.
"""

from __future__ import annotations

import re
from xml.etree import ElementTree

from harness.rendering import facts
from harness.report.cell import DECLARED, FAIL, NO_EVIDENCE, NOT_RUN, Cell
from harness.report.report import Report

_ELEMENTS = {FAIL: "failure", NO_EVIDENCE: "error", DECLARED: "skipped", NOT_RUN: "skipped"}
#: Characters that XML 1.0 forbids, even escaped.
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def clean(text: str) -> str:
    """The text without characters that XML forbids."""
    return _FORBIDDEN.sub("\ufffd", text)


def junit(report: Report) -> str:
    """The document: a suite for each operator, backend and device."""
    suites: dict[str, list[Cell]] = {}
    for cell in report.cells:
        suites.setdefault(clean(f"{cell.operator}.{cell.backend}.{cell.device}"), []).append(cell)
    root = ElementTree.Element("testsuites", name="conformance")
    for name, cells in suites.items():
        suite = ElementTree.SubElement(root, "testsuite", {"name": name, **_counts(cells)})
        properties = ElementTree.SubElement(suite, "properties")
        for fact, value in (("machine", facts.place(report)), ("commit", facts.commit(report))):
            ElementTree.SubElement(properties, "property", name=fact, value=clean(value))
        for cell in cells:
            _case(suite, name, cell)
    if not report.complete:
        suite = ElementTree.SubElement(root, "testsuite", name="run", tests="1", failures="0", errors="1", skipped="0")
        case = ElementTree.SubElement(suite, "testcase", classname="run", name="comes to its end", time="0")
        ElementTree.SubElement(case, "error", message=f"{report.why_partial()}: cells are missing")
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _counts(cells: list[Cell]) -> dict[str, str]:
    elements = [_ELEMENTS.get(cell.verdict) for cell in cells]
    counts = {"tests": len(cells), "failures": elements.count("failure"), "errors": elements.count("error")}
    counts["skipped"] = elements.count("skipped")
    return {name: str(count) for name, count in counts.items()} | {"time": f"{sum(c.seconds for c in cells):.4f}"}


def _case(suite: ElementTree.Element, name: str, cell: Cell) -> None:
    case = ElementTree.SubElement(
        suite,
        "testcase",
        classname=clean(f"{name}.{cell.dtype}"),
        name=clean(cell.property),
        time=f"{cell.seconds:.4f}",
    )
    element = _ELEMENTS.get(cell.verdict)
    if element is None:
        return
    message = clean(f"{cell.verdict}: {cell.reason.splitlines()[0]}")
    inner = ElementTree.SubElement(case, element, message=message, type=cell.verdict)
    script = cell.figures.get("reproducer")
    inner.text = clean(cell.reason + (f"\n\nThis script reproduces it:\n\n{script}" if isinstance(script, str) else ""))
