"""What the README and docs/integration.md show was drawn from the records in results/, not typed."""

import re
from pathlib import Path

from harness.properties import all_properties
from harness.rendering import tables
from harness.report.cell import FAIL, NO_EVIDENCE
from harness.report.report import Report

ROOT = Path(__file__).parents[2]


def test_tables_are_those_of_the_reports() -> None:
    readme = (ROOT / "README.md").read_text()
    names = re.findall(r"<!-- (results/\S+\.json) -->", readme)
    assert names, "the README shows no results"
    for name in names:
        report = Report.read(ROOT / name)
        redraw = f"python -m harness show {name} --into README.md"
        assert tables.insert(tables.markdown(report), readme, name) == readme, f"out of date: {redraw}"
        assert report.complete
        assert not [cell for cell in report.cells if cell.verdict in (FAIL, NO_EVIDENCE)]


def test_integration_tables_are_those_of_the_reports() -> None:
    page = (ROOT / "docs/integration.md").read_text()
    names = re.findall(r"<!-- (results/\S+\.json) -->", page)
    assert names, "docs/integration.md shows no results"
    for name in names:
        table = tables.markdown(Report.read(ROOT / name), "integration")
        redraw = f"python -m harness show {name} --view integration --into docs/integration.md"
        assert tables.insert(table, page, name) == page, f"out of date: {redraw}"


def test_every_integration_property_is_explained() -> None:
    page = (ROOT / "docs/integration.md").read_text()
    asked = page.partition("## What is asked")[2].partition("## How")[0]
    view = tables.VIEWS["integration"] or frozenset()
    assert view <= set(all_properties())
    assert not [name for name in view if not re.search(rf"(\| |, ){name}( \||, )", asked)]


def test_commands_name_sessions_that_exist() -> None:
    readme = (ROOT / "README.md").read_text()
    sessions = set(re.findall(r"^def ([a-z_]+)\(session", (ROOT / "noxfile.py").read_text(), flags=re.MULTILINE))
    named = {name.replace("-", "_") for name in re.findall(r"nox -s \"?([a-z-]+)", readme)}
    assert named <= sessions
