"""Exit code 0 says that what was required was judged and holds; anything else says why, in a sentence."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import harness
from harness.errors import UnknownName
from harness.report.cell import DECLARED, FAIL, NO_EVIDENCE, NOT_RUN, PASS, Cell
from harness.report.levels import GRADIENTS, LEVELS, PRODUCTION, PYTORCH, SAFE, VALUES, exit_reason
from harness.report.report import Report
from harness.report.shards import RunPlan
from harness.report.suite import KnownProperty, Suite
from harness.running.selection import Selection
from tests.meta.conftest import Run
from tests.meta.reports import MACHINE, cell
from tests.meta.tiers import WHOLE, first_alone
from tests.zoo.honest.lltm import plain

SUITE = Suite(
    backends=("aten-cpp",),
    properties=(
        KnownProperty("sizes", "", level=VALUES),
        KnownProperty("vjp-parity", "", level=GRADIENTS),
        KnownProperty("memory", "", level=SAFE),
        KnownProperty("compile", "", level=PYTORCH),
        KnownProperty("cuda-graphs", "", level=PRODUCTION),
    ),
)
RIGHT = tuple(cell(property=known.name) for known in SUITE.properties)


def report(*cells: Cell, required: str = SAFE, complete: bool = True, **changes: Any) -> Report:
    """Of two cells of one property, the later one counts: one that passes is replaced."""
    found = {each.key: each for each in cells}
    return Report(MACHINE, complete, tuple(found.values()), suite=SUITE, required=required, **changes)


@pytest.mark.parametrize("required", LEVELS)
def test_what_holds_is_green(required: str) -> None:
    assert exit_reason(report(*RIGHT, required=required)) == ""
    assert report(*RIGHT, required=required).ok


@pytest.mark.parametrize("verdict", [FAIL, NO_EVIDENCE, DECLARED])
@pytest.mark.parametrize("number", range(5))
def test_what_is_required_decides(verdict: str, number: int) -> None:
    """A property of each level goes wrong in turn: that decides where its level is required, and nowhere else."""
    wrong = cell(verdict, property=SUITE.properties[number].name)
    for required in LEVELS:
        found = report(*RIGHT, wrong, required=required)
        assert found.ok is (number > LEVELS.index(required)), (required, wrong)
        assert (wrong.property in exit_reason(found)) is not found.ok


def test_each_reason_is_a_sentence() -> None:
    fails = [cell(FAIL, property=name) for name in ("sizes", "vjp-parity", "memory")]
    assert exit_reason(report(*fails, cell(FAIL, property="memory", dtype="float64"))) == (
        "4 cells of the required levels (values to safe) failed: sizes, vjp-parity, memory of mine"
    )
    assert exit_reason(report(fails[0], required=VALUES)) == (
        "1 cell of the required levels (values) failed: sizes of mine"
    )
    assert exit_reason(report(*RIGHT, cell(NO_EVIDENCE))) == (
        "1 cell of the required levels (values to safe) could not tell right from wrong: sizes of mine"
    )
    assert exit_reason(report(*RIGHT, cell(DECLARED))) == (
        "sizes of mine is declared not to hold, but the required levels (values to safe) include it: repair the "
        "function, or require less with --level"
    )
    assert exit_reason(report(*RIGHT, complete=False)) == "the run did not finish"
    many = [cell(FAIL, backend=name, property=each.property) for name in "abc" for each in RIGHT]
    assert "failed: sizes, vjp-parity, memory and 2 more of a, b and 1 more" in exit_reason(
        report(*many, required=PRODUCTION)
    )


def test_a_wrong_gradient_fails_at_gradients() -> None:
    wrong = cell(FAIL, level=GRADIENTS)
    assert exit_reason(report(*RIGHT, wrong, required=VALUES)) == ""
    assert exit_reason(report(*RIGHT, wrong, required=GRADIENTS)).startswith("1 cell of")
    assert exit_reason(report(wrong, required=VALUES)) == "", "its outputs are right"


def test_a_backend_may_declare_and_a_candidate_may_not() -> None:
    known = [replace(each, backend="aten-cpp") for each in RIGHT]
    declared = cell(DECLARED, backend="aten-cpp")
    assert exit_reason(report(*known, declared, required=PRODUCTION)) == ""
    assert exit_reason(report(*known, declared, cell(DECLARED), required=PRODUCTION)).startswith("sizes of mine is")


@pytest.mark.parametrize(
    ("cells", "says"),
    [
        ((), "nothing was judged: no cell was selected"),
        ((cell(NOT_RUN, reason="no GPU"),), "nothing was judged: 1 cell is not-run (no GPU)"),
        (
            (cell(DECLARED, backend="aten-cpp"), cell(NOT_RUN, property="memory")),
            "nothing was judged: 2 cells are not-run or declared (why not-run)",
        ),
        (
            (cell(property="compile"),),
            "nothing of the required levels (values to safe) was judged: every cell is of a later level, which --level "
            "can require",
        ),
    ],
    ids=["none", "not-run", "declared", "later"],
)
def test_a_run_in_which_nothing_was_judged_is_not_green(cells: tuple[Cell, ...], says: str) -> None:
    assert exit_reason(report(*cells)) == says
    assert not report(*cells).ok


def test_a_property_that_the_report_does_not_know_is_of_the_last_level() -> None:
    assert exit_reason(report(*RIGHT, cell(FAIL, property="fuzz"), required=PYTORCH)) == ""
    assert exit_reason(report(*RIGHT, cell(FAIL, property="fuzz"), required=PRODUCTION)) != ""


def test_a_shard_is_judged_by_what_it_has() -> None:
    plan = RunPlan("asked", "files", shards=2, begun=(1,), finished=(1,))
    shard = report(complete=False, plan=plan)
    assert exit_reason(shard, part=True) == ""
    assert exit_reason(shard) == "shard 2 of 2 is missing"
    assert exit_reason(replace(shard, plan=replace(plan, finished=())), part=True) != ""
    assert exit_reason(replace(shard, cells=(cell(FAIL),)), part=True).startswith("1 cell")


def test_the_usual_level_is_that_of_what_is_judged() -> None:
    assert Selection().usual_level == PRODUCTION
    assert Selection(candidates=("lltm=k.py:f",)).usual_level == SAFE
    assert Selection(candidates=("lltm=k.py:f",), backends=("triton",)).usual_level == PRODUCTION


# The command line


def _candidate(folder: Path, body: str, name: str = "f", declared: str = "{}") -> str:
    file = folder / "k.py"
    file.write_text(f"import torch\nfrom spec.lltm import forward\nDECLARED = {declared}\n\n{body}\n")
    return f"--candidate=lltm={file}:{name}"


_RIGHT = "def f(*inputs):\n    return forward(*inputs)"
_WRONG = "def f(*inputs):\n    return tuple(2 * y for y in forward(*inputs))"
_QUICK = ("--dtype=float32", "--device=cpu", "--isolate=off")


def _printed(done: Any) -> str:
    return " ".join(done.stdout.split())


@pytest.mark.long(WHOLE)
def test_what_is_not_required_is_skipped(conformance: Run, tmp_path: Path) -> None:
    """The function checks no arguments, so that rejects-wrong-calls fails, which `safe` does not include."""
    path = tmp_path / "report.json"
    options = (_candidate(tmp_path, _RIGHT), *_QUICK, f"--report={path}")
    done = conformance("forward_parity rejects_wrong_calls", *options, "-rs")
    assert done.returncode == 0, done.stdout
    assert "1 passed, 1 skipped" in done.stdout
    assert "not supported, and not required: a call with" in _printed(done)
    found = Report.read(path)
    assert found.required == SAFE
    assert {each.property: each.verdict for each in found.cells} == {
        "forward-parity": PASS,
        "rejects-wrong-calls": FAIL,
    }
    done = conformance("forward_parity rejects_wrong_calls", *options, "--level=pytorch")
    assert done.returncode == 1
    assert "The run is not green: 1 cell of the required levels (values to pytorch) failed:" in _printed(done)
    assert Report.read(path).required == PYTORCH


@pytest.mark.parametrize("workers", first_alone([[], ["-n", "2", "--dist", "loadgroup"]]), ids=["alone", "workers"])
def test_a_declared_value_is_not_green(conformance: Run, tmp_path: Path, workers: list[str]) -> None:
    declared = "{'forward-parity': 'not yet', 'vjp-parity': 'not yet'}"
    done = conformance(
        "forward_parity vjp_parity no_side_effects",
        *(_candidate(tmp_path, _WRONG, declared=declared), *_QUICK, f"--report={tmp_path / 'report.json'}"),
        *workers,
    )
    assert done.returncode == 1, done.stdout
    assert "forward-parity, vjp-parity of f are declared not to hold" in _printed(done)


@pytest.mark.long(WHOLE)
def test_a_device_that_is_not_there_is_not_green(conformance: Run, tmp_path: Path) -> None:
    options = (_candidate(tmp_path, _RIGHT), "--dtype=float32", "--device=cuda", f"--report={tmp_path / 'report.json'}")
    done = conformance("forward_parity", *options, CUDA_VISIBLE_DEVICES="")
    assert done.returncode == 1, done.stdout
    assert "The run is not green: nothing was judged: 1 cell is not-run (" in _printed(done)


@pytest.mark.parametrize(
    ("properties", "more", "says"),
    [
        ("gradcheck", [], "nothing was judged: no selected property is asked on these devices in these dtypes."),
        (
            "sizes",
            ["-k", "forward-parities"],
            "-k 'forward-parities' selects no test; --property NAME selects a property",
        ),
    ],
)
def test_a_run_without_a_test_says_so(
    conformance: Run, tmp_path: Path, properties: str, more: list[str], says: str
) -> None:
    options = (_candidate(tmp_path, _RIGHT), *_QUICK, f"--report={tmp_path / 'report.json'}", *more)
    done = conformance(properties, *options)
    assert done.returncode == pytest.ExitCode.NO_TESTS_COLLECTED, done.stdout
    assert says in _printed(done)


@pytest.mark.long(WHOLE)
def test_a_candidate_has_no_name_of_a_backend(conformance: Run, tmp_path: Path) -> None:
    options = (*_QUICK, f"--report={tmp_path / 'report.json'}")
    done = conformance("sizes", _candidate(tmp_path, _RIGHT.replace("def f", "def triton"), "triton"), *options)
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert "there is a backend 'triton' already; rename the function" in done.stdout + done.stderr


def test_verify_requires_a_level() -> None:
    names: Any = {"device": "cpu", "dtypes": ["float32"], "properties": ["forward-parity", "rejects-wrong-calls"]}
    found = harness.verify(plain, "lltm", **names)
    assert (found.required, found.ok) == (SAFE, True)
    found = harness.verify(plain, "lltm", level=PYTORCH, **names)
    assert not found.ok
    assert exit_reason(found).startswith("1 cell of the required levels (values to pytorch) failed")
    with pytest.raises(UnknownName, match="unknown level 'sage'; did you mean 'safe'"):
        harness.verify(plain, "lltm", level="sage", **names)
