"""The tables of the README, docs/results.md and docs/integration.md are those of the records in results/."""

import json
import re
from pathlib import Path

from harness.judging.property import INTEGRATION
from harness.properties import all_properties
from harness.rendering import tables
from harness.report.cell import DECLARED, FAIL, NO_EVIDENCE, NOT_RUN, PASS
from harness.report.report import Report
from tools import verdict_picture
from tools.study import tables as study_tables
from tools.unanswered import asked, told

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
#: Cells that failed and are explained beside the table.
EXPLAINED = {
    "results/nvidia-h200/operators.json": {("softmax", "torch-native", "cuda", "bfloat16", "layouts")},
}


def test_tables_are_those_of_the_reports() -> None:
    page = (ROOT / "docs/results.md").read_text()
    names = re.findall(r"<!-- (results/\S+\.json) -->", page)
    assert names, "docs/results.md shows no results"
    for name in names:
        report = Report.read(ROOT / name)
        redraw = f"python -m harness show {name} --into docs/results.md"
        assert tables.insert(tables.markdown(report), page, name) == page, f"out of date: {redraw}"
        assert report.complete
        bad = {cell.key for cell in report.cells if cell.verdict in (FAIL, NO_EVIDENCE)}
        assert bad == EXPLAINED.get(name, set())


def test_the_counts_of_the_readme_are_those_of_the_records() -> None:
    reports = [Report.read(ROOT / f"results/cpu/{name}.json") for name in ("operators", "further-operators")]
    there = told()
    for machine, cells in (
        ("CPU", [cell for report in reports for cell in report.cells]),
        ("NVIDIA H200", [there[key][-1].cell for key in asked()]),
    ):
        verdicts = [cell.verdict for cell in cells]
        counts = (verdicts.count(verdict) for verdict in (PASS, FAIL, NO_EVIDENCE, DECLARED, NOT_RUN))
        row = f"| {machine} | {len({cell.operator for cell in cells})} | {' | '.join(map(str, counts))} |"
        assert row in README.splitlines(), f"the README should show this row:\n{row}"
    assert len(README.splitlines()) <= 130, "the first page is short"


def test_the_error_rates_of_the_readme_are_those_of_the_records() -> None:
    study = json.loads((ROOT / "results/cpu/method.json").read_text())
    tally, pooled = study_tables.tally, (study_tables.POOLED,)
    text = " ".join(README.split())  # wherever its lines end
    rejected, calls = tally(study, "controls", "ours", study_tables.SINGLE)
    assert f"{rejected} of {calls} calls of" in text
    names = sum(len(part["controls"]) for part in study["operators"].values())
    assert f"{names} right implementations of {len(study['operators'])} operators" in text
    for dtype in study_tables.dtypes_of(study):
        k, n = tally(study, "faults", "ours", pooled, dtypes=(dtype,))
        assert f"{100 * k / n:.3g}% in {dtype}" in text
    k, n = tally(study, "faults", "ours", study_tables.SINGLE, dtypes=("bfloat16",))
    assert f"From one call it found {k / n:.0%} in bfloat16" in text

    mutation = json.loads((ROOT / "results/cpu/mutation.json").read_text())
    found = sum(fault["status"] == "killed" for fault in mutation["faults"])
    assert f"{mutation['score']:.1%}. Of {len(mutation['faults'])} hand-written faults it found {found} (" in text


def test_the_gains_of_timing_attacks_are_those_of_the_record() -> None:
    record = json.loads((ROOT / "results/nvidia-h200/timing-attacks.json").read_text())
    text = " ".join((ROOT / "docs/method.md").read_text().split())
    gains = {entry["attack"]: entry["gain"] for entry in record["attacks"] if "gain" in entry}
    for name in ("honest", "patches_events", "slows_the_baseline", "other_stream", "overlaps_streams"):
        gain = gains[name]
        assert f"{gain['median']:.2f} ({gain['low']:.2f} to {gain['high']:.2f})" in text, name
    assert f"`clock_patched` {gains['clock_patched']['median']:.2f}" in text
    (late,) = [entry for entry in record["attacks"] if entry["attack"] == "put_off"]
    assert late["status"] == "suspect"


def test_the_picture_is_that_of_the_record() -> None:
    drawn = verdict_picture.picture(Report.read(ROOT / verdict_picture.RECORD))
    assert (ROOT / verdict_picture.PICTURE).read_text() == drawn, "out of date: python -m tools.verdict_picture"


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
    view = [name for name, found in all_properties().items() if found.view == INTEGRATION]
    assert view
    assert not [name for name in view if not re.search(rf"(\| |, ){name}( \||, )", asked)]


def test_commands_name_sessions_that_exist() -> None:
    sessions = set(re.findall(r"^def ([a-z_]+)\(session", (ROOT / "noxfile.py").read_text(), flags=re.MULTILINE))
    named = {name.replace("-", "_") for name in re.findall(r"nox -s \"?([a-z-]+)", README)}
    assert named <= sessions


def test_links_of_the_readme_lead_to_files() -> None:
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", README)
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []
