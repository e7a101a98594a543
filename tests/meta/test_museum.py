"""The museum: entries are well formed, verdicts are right, and a package in two versions is judged as it should be."""

from __future__ import annotations

import importlib.metadata
import json
import re
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from harness import discovery
from harness.errors import NoEvidence, Unavailable, UnknownName, UsageError
from harness.properties import all_properties
from harness.report.cell import FAIL, NO_EVIDENCE, NOT_RUN, PASS, Cell
from harness.report.report import Report
from museum import __main__ as command
from museum import document, entries, installing, judging, verdicts
from museum.entries import CAUGHT, MISSED, Entry
from museum.verdicts import FAILS, NOT_ASKED, NOT_INSTALLED, NOT_JUDGED, OTHER_REASON, PASSES, Finding
from museum.visiting import Visit, visit
from tests.meta.tiers import TOOL

ROOT = Path(__file__).parents[2]
RECORD = ROOT / "results/cpu/museum.json"
KNOWN = entries.read()

ENTRY = Entry(
    name="doubled",
    package="doubling",
    broken="1.0",
    fixed="1.1",
    issue="https://example.org/1",
    defect="it triples",
    candidate="doubling.py:doubled",
    judged_by={"forward-parity": "^output was", "sizes": "^output was"},
    device="cpu",
    dtype="float32",
    reference="doubling.py:twice",
    example="doubling.py:example",
)


@pytest.mark.parametrize("entry", KNOWN, ids=[entry.name for entry in KNOWN])
def test_what_an_entry_names_is_there(entry: Entry) -> None:
    for folder, named in (
        ("adapters", entry.candidate),
        ("references", entry.reference),
        ("references", entry.example),
    ):
        file, _, function = named.partition(":")
        if named:
            text = (entries.HERE / folder / file).read_text()
            assert re.search(rf"^def {function}\(", text, flags=re.MULTILINE), f"{file} has no function {function}"
    assert set(entry.judged_by) <= set(all_properties())
    assert not entry.operator or entry.operator in discovery.operators()


def test_adapters_and_references_are_those_of_entries() -> None:
    named = {("adapters", entry.candidate) for entry in KNOWN}
    named |= {("references", name) for entry in KNOWN for name in (entry.reference, entry.example) if name}
    there = {(file.parent.name, file.name) for file in entries.HERE.glob("*/*.py")}
    assert {(folder, name.partition(":")[0]) for folder, name in named} == there


GOOD = """
package = "doubling"
[[entry]]
name = "doubled"
broken = "1.0"
fixed = "1.1"
issue = "https://example.org/1"
defect = "it triples"
candidate = "doubling.py:doubled"
operator = "softmax"
device = "cpu"
dtype = "float32"
judged_by = {forward-parity = "^output was"}
"""


@pytest.mark.parametrize(
    ("was", "becomes", "words"),
    [
        ('broken = "1.0"\n', "", "entry[0] lacks broken"),
        ('device = "cpu"', 'device = "tpu"', "device was 'tpu', but should be one of cpu, triton-interpreted, cuda"),
        ('operator = "softmax"', "", "give one of both"),
        ('operator = "softmax"', 'reference = "a.py:f"', "should have one with a reference"),
        ('dtype = "float32"', 'dtype = "float32"\nexpected = "missed"', "a miss says why"),
        ('fixed = "1.1"', 'fixed = "1.0"', "should have two releases"),
        ('"^output was"', '"("', "which is no expression"),
        ('defect = "it triples"', "defect = it triples", "cannot be read"),
        ("package", 'beside = {"2.0" = ["a==1"]}\npackage', "'2.0', which no entry has: 1.0, 1.1"),
    ],
)
def test_a_malformed_entry_is_refused_in_words(tmp_path: Path, was: str, becomes: str, words: str) -> None:
    (tmp_path / "doubling.toml").write_text(GOOD)
    assert [entry.name for entry in entries.read(tmp_path)] == ["doubled"]
    assert was in GOOD
    (tmp_path / "doubling.toml").write_text(GOOD.replace(was, becomes))
    with pytest.raises(UsageError, match=re.escape(words)):
        entries.read(tmp_path)


def test_two_entries_of_one_name_are_refused(tmp_path: Path) -> None:
    for name in ("one.toml", "two.toml"):
        (tmp_path / name).write_text(GOOD)
    with pytest.raises(UsageError, match="two entries have the name 'doubled'"):
        entries.read(tmp_path)


def test_entries_are_selected_by_name_and_package() -> None:
    other = replace(ENTRY, name="other", package="others")
    assert entries.selected([ENTRY, other], [], []) == (ENTRY, other)
    assert entries.selected([ENTRY, other], ["other"], []) == (other,)
    assert entries.selected([ENTRY, other], [], ["doubling"]) == (ENTRY,)
    with pytest.raises(UnknownName, match="unknown package 'doublin'"):
        entries.selected([ENTRY, other], [], ["doublin"])


def test_entries_on_cuda_are_judged_without_a_gpu_only_if_they_are_asked_for(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    compiled = replace(ENTRY, name="compiled", device="cuda")
    judged: list[str] = []

    def seen(entry: Entry) -> Visit:
        judged.append(entry.name)
        return Visit(entry, Finding(CAUGHT), Finding(PASSES))

    monkeypatch.setattr(entries, "read", lambda: (ENTRY, compiled))
    monkeypatch.setattr(command, "visit", seen)
    for gpu, asked, names in (
        (False, [], ["doubled"]),
        (True, [], ["doubled", "compiled"]),
        (False, ["--device", "cuda"], ["compiled"]),
        (False, ["--entry", "compiled"], ["compiled"]),
    ):
        monkeypatch.setattr(torch.cuda, "is_available", lambda gpu=gpu: gpu)
        judged.clear()
        assert command.main([*asked, "-o", str(tmp_path / "museum.json")]) == 0
        assert judged == names


WRONG = "output was 3 at (0), but should be 2"


def _cells(**verdict_and_reason: tuple[str, str]) -> list[Cell]:
    return [
        Cell("twice", "doubled", "cpu", "float32", name.replace("_", "-"), verdict, reason)
        for name, (verdict, reason) in verdict_and_reason.items()
    ]


@pytest.mark.parametrize(
    ("cells", "outcome"),
    [
        (_cells(forward_parity=(FAIL, WRONG), sizes=(FAIL, WRONG)), CAUGHT),
        (_cells(forward_parity=(PASS, ""), sizes=(PASS, "")), MISSED),
        (_cells(forward_parity=(FAIL, "forward raised ImportError"), sizes=(FAIL, WRONG)), OTHER_REASON),
        (_cells(forward_parity=(FAIL, f"forward raised\n{WRONG}"), sizes=(FAIL, WRONG)), OTHER_REASON),
        (_cells(forward_parity=(FAIL, WRONG), sizes=(PASS, "")), OTHER_REASON),
        (_cells(forward_parity=(FAIL, WRONG)), NOT_JUDGED),
        (_cells(forward_parity=(FAIL, WRONG), sizes=(NOT_RUN, WRONG)), NOT_JUDGED),
        (_cells(forward_parity=(NO_EVIDENCE, WRONG), sizes=(FAIL, WRONG)), NOT_JUDGED),
        ([], NOT_JUDGED),
    ],
)
def test_the_verdict_on_a_release_with_the_defect(cells: list[Cell], outcome: str) -> None:
    """Caught for another reason is not caught, and nothing judged is neither caught nor missed."""
    assert verdicts.of_broken(ENTRY, cells).outcome == outcome


@pytest.mark.parametrize(
    ("cells", "outcome"),
    [
        (_cells(forward_parity=(PASS, ""), sizes=(PASS, "")), PASSES),
        (_cells(forward_parity=(PASS, ""), sizes=(FAIL, "anything")), FAILS),
        (_cells(forward_parity=(NOT_RUN, "no device"), sizes=(FAIL, "anything")), FAILS),
        (_cells(forward_parity=(PASS, ""), sizes=(NOT_RUN, "no device")), NOT_JUDGED),
        (_cells(forward_parity=(PASS, "")), NOT_JUDGED),
        ([], NOT_JUDGED),
    ],
)
def test_the_verdict_on_a_repaired_release(cells: list[Cell], outcome: str) -> None:
    assert verdicts.of_fixed(ENTRY, cells).outcome == outcome


def test_an_entry_holds_if_both_releases_behave_as_it_says() -> None:
    open_still, missed = replace(ENTRY, fixed=""), replace(ENTRY, expected=MISSED, why="too rare")
    assert verdicts.holds(ENTRY, Finding(CAUGHT), Finding(PASSES))
    assert verdicts.holds(open_still, Finding(CAUGHT), Finding(NOT_ASKED))
    assert verdicts.holds(missed, Finding(MISSED), Finding(PASSES))
    assert not verdicts.holds(missed, Finding(CAUGHT), Finding(PASSES))
    for outcome in (MISSED, OTHER_REASON, NOT_JUDGED, NOT_INSTALLED):
        assert not verdicts.holds(ENTRY, Finding(outcome), Finding(PASSES))
    for outcome in (FAILS, NOT_JUDGED, NOT_INSTALLED, NOT_ASKED):
        assert not verdicts.holds(ENTRY, Finding(CAUGHT), Finding(outcome))


def test_a_release_that_cannot_be_installed_is_no_success(tmp_path: Path) -> None:
    def never(requirement: str) -> Path:
        raise Unavailable(f"pip could not install {requirement}: no network")

    found = visit(ENTRY, find=never, reports=tmp_path)
    assert (found.broken.outcome, found.fixed.outcome, found.holds) == (NOT_INSTALLED, NOT_INSTALLED, False)
    assert "doubling 1.0 was not installed (pip could not install doubling==1.0: no network)" in found.sentence


def test_a_run_without_a_report_is_no_success(tmp_path: Path) -> None:
    def silent(entry: Entry, folders: Sequence[Path], report: Path) -> Report:
        raise NoEvidence("`judge` wrote no report (exit code 4): no such option")

    found = visit(ENTRY, judge=silent, find=lambda requirement: tmp_path, reports=tmp_path)
    assert (found.broken.outcome, found.holds) == (NOT_JUDGED, False)


def test_a_release_is_installed_once_and_whole(tmp_path: Path) -> None:
    asked: list[Sequence[str]] = []

    def install(requirements: Sequence[str], target: Path) -> None:
        asked.append(requirements)
        (target / "half.py").write_text("")
        if requirements == ["doubling==2.0"]:
            raise Unavailable("no network")

    place = installing.folder_of("doubling==1.0", tmp_path, install)
    assert installing.folder_of("doubling==1.0", tmp_path, install) == place
    assert asked == [["doubling==1.0"]]
    with pytest.raises(Unavailable):
        installing.folder_of("doubling==2.0", tmp_path, install)
    assert [folder.name for folder in tmp_path.iterdir()] == ["doubling-1.0"]


class _Pip:
    """In place of pip: it fails with these texts, one a call, and then succeeds."""

    def __init__(self, *errors: str) -> None:
        self.errors = list(errors)
        self.calls: list[list[str]] = []

    def __call__(self, command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        self.calls.append(command)
        error = self.errors.pop(0) if self.errors else ""
        return subprocess.CompletedProcess(command, 1 if error else 0, "", error)


#: What pip prints of a setup.py that imports torch, as that of entmax 1.0.
IMPORTS_TORCH = """
      ModuleNotFoundError: No module named 'torch'
      [end of output]

  note: This error originates from a subprocess, and is likely not a problem with pip.
"""


def test_a_source_whose_setup_imports_torch_is_built_in_this_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pip = _Pip(IMPORTS_TORCH)
    monkeypatch.setattr(subprocess, "run", pip)
    installing.pip(["entmax==1.0"], tmp_path)
    assert ["--no-build-isolation" in call for call in pip.calls] == [False, True]
    assert all(call[-1] == "entmax==1.0" for call in pip.calls)


def test_a_release_that_cannot_be_built_is_named_with_the_error_of_its_setup(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subprocess, "run", _Pip(IMPORTS_TORCH, IMPORTS_TORCH))
    with pytest.raises(Unavailable, match=r"pip could not install entmax==1\.0: ModuleNotFoundError: No module named"):
        installing.pip(["entmax==1.0"], tmp_path)
    monkeypatch.setattr(subprocess, "run", _Pip("killed", "killed"))
    with pytest.raises(Unavailable, match=r"pip could not install entmax==1\.0: killed$"):
        installing.pip(["entmax==1.0"], tmp_path)


def test_a_release_that_is_there_is_not_installed(tmp_path: Path) -> None:
    """Nor is what stands beside another release."""
    there = importlib.metadata.version("pytest")
    asked: list[str] = []

    def find(requirement: str) -> Path:
        asked.append(requirement)
        raise Unavailable("no network")

    entry = replace(ENTRY, package="pytest", broken=there, fixed="1.1", needs=("n==1",), beside={"1.1": ("b==2",)})
    visit(entry, find=find, reports=tmp_path)
    visit(replace(entry, needs=()), judge=_never, find=find, reports=tmp_path)
    assert asked == ["n==1", "pytest==1.1", "pytest==1.1"]
    assert entry.requirements("1.1") == ("pytest==1.1", "n==1", "b==2")


def _never(entry: Entry, folders: Sequence[Path], report: Path) -> Report:
    assert not list(folders)
    raise NoEvidence("nothing is judged here")


FILES = {
    "adapters/doubling.py": "import doubling\ndef doubled(x):\n    return doubling.double(x)\n",
    "references/doubling.py": (
        "import torch\nfrom torch import Tensor\ndef twice(x: Tensor) -> Tensor:\n    return x * 2\n"
        "def example():\n    return (torch.randn(3, 4),)\n"
    ),
    "1.0/doubling/__init__.py": "def double(x):\n    return x * 3\n",
    "1.1/doubling/__init__.py": "def double(x):\n    return x + x\n",
}


@pytest.mark.long(TOOL)
def test_a_package_in_two_versions_is_judged_by_the_command_line(tmp_path: Path) -> None:
    """The one that triples is caught, the one that doubles passes: each is found in its own folder."""
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    entry = replace(ENTRY, judged_by={"forward-parity": "^output was .* but should be"})
    found = visit(
        entry,
        judge=lambda asked, folders, report: judging.judged(asked, folders, report, tmp_path),
        find=lambda requirement: tmp_path / requirement.partition("==")[2],
        reports=tmp_path / "reports",
    )
    assert (found.broken.outcome, found.fixed.outcome) == (CAUGHT, PASSES), found.sentence
    assert found.holds
    assert found.record()["environment"]["torch"]


def test_a_row_of_the_page_has_the_reason_alone_and_no_cell_too_many(tmp_path: Path) -> None:
    """A bar in a reason would begin another cell."""

    def wrong(entry: Entry, folders: Sequence[Path], report: Path) -> Report:
        reason = f"{WRONG} (elementwise error 1, allowed 0.1) [twice(small: batch=3)]"
        cells = _cells(forward_parity=(FAIL, f"|a| {reason}"), sizes=(FAIL, reason))
        return Report({"torch": "2", "python": "3", "gpu": None, "cpu": "one"}, True, tuple(cells))

    entry = replace(ENTRY, judged_by={"forward-parity": "output was", "sizes": "output was"})
    found = visit(entry, judge=wrong, find=lambda requirement: tmp_path, reports=tmp_path)
    missed = {**found.record(), "expected": MISSED, "why": "|p - q| jumps"}
    drawn = document.drawn({"entries": [found.record(), missed]})
    assert drawn["caught"].endswith("| \\|a\\| output was 3 at (0), but should be 2 |\n")
    assert drawn["missed"].endswith("| \\|p - q\\| jumps |\n")
    assert "torch 2, Python 3, one." in drawn["run"]


def test_the_page_is_that_of_the_record() -> None:
    record: dict[str, Any] = json.loads(RECORD.read_text())
    text = (ROOT / document.DOCUMENT).read_text()
    assert document.insert(record, text) == text, "out of date: python -m museum --draw results/cpu/museum.json"
    known = {entry.name: entry for entry in KNOWN}
    assert record["entries"]
    for row in record["entries"]:
        entry = known[row["name"]]
        assert row["holds"], f"{entry.name} does not behave as it says"
        assert (row["broken"]["version"], row["fixed"]["version"]) == (entry.broken, entry.fixed)
        assert (row["properties"], row["expected"]) == (list(entry.judged_by), entry.expected)
