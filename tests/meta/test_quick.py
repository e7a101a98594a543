"""A quick run judges what the records say, and its sentence says what it left out."""

from __future__ import annotations

from dataclasses import replace

import pytest

from harness.properties import all_properties
from harness.rendering import sentence
from harness.report.levels import SAFE, is_required
from harness.report.merge import merge
from harness.running.quick import FILE, quick
from tests.meta.conftest import Run
from tests.meta.reports import ONE_EACH, of, row
from tests.meta.tiers import WHOLE
from tests.zoo import registry as zoo
from tools import quick_set


def _noticed() -> dict[str, list[str]]:
    return quick_set.recorded()["noticed"]


def test_the_set_is_what_the_measurements_give() -> None:
    """After other costs or faults: `python -m tools.quick_set --costs`, or `--measure`."""
    assert FILE.read_text() == quick_set.text(_noticed(), quick_set.recorded()["cost"])
    assert quick().share >= quick_set.SHARE


@pytest.mark.long(WHOLE)
def test_costs_are_those_of_what_was_judged() -> None:
    """`sanitizers` is asked of no candidate unless it is asked for."""
    names = ["forward-parity", "raw-backward", "sanitizers"]
    assert quick_set.costs(names, turns=2).keys() <= {"forward-parity", "raw-backward"}
    assert quick_set.costs(["forward-parity"], turns=2)["forward-parity"] > 0


def test_each_fault_of_the_record_is_caught_by_the_property_that_its_test_names() -> None:
    """Faults that came later are judged by `python -m tools.quick_set --measure`."""
    caught = {fault.id: fault.caught_by for fault in quick_set.judged_faults()}
    noticed = _noticed()
    assert len(noticed) > len(zoo.FAULTS) / 2
    for fault in noticed.keys() & caught.keys():
        assert noticed[fault][0] == caught[fault], f"{fault}: run python -m tools.quick_set --measure"


def test_a_quick_run_is_about_what_decides_the_exit_code_of_a_candidate() -> None:
    properties = all_properties()
    assert {"forward-parity", "vjp-parity"} <= set(quick().properties)
    assert all(is_required(properties[name].level, SAFE) for name in quick().properties)
    assert set(quick_set.ALWAYS) <= set(quick().in_each_dtype) <= set(quick().properties)


def test_the_set_takes_what_adds_most_for_its_cost_until_it_is_enough() -> None:
    cost = {"forward-parity": 0.5, "vjp-parity": 0.5, "cheap": 0.1, "dear": 0.8, "useless": 0.01, "too-dear": 5.0}
    noticed = {
        "a": ["forward-parity"],
        "b": ["cheap", "dear"],
        "c": ["dear"],
        "d": ["too-dear"],
        "e": ["vjp-parity", "useless"],
        "f": ["none-that-is-asked"],
    }
    assert quick_set.chosen(noticed, cost, share=0.5) == ["forward-parity", "vjp-parity", "cheap"]
    assert quick_set.chosen(noticed, cost, share=0.6) == ["forward-parity", "vjp-parity", "cheap", "dear"]
    assert quick_set.chosen(noticed, cost, share=1.0) == ["forward-parity", "vjp-parity", "cheap", "dear", "too-dear"]
    assert quick_set.share_of(noticed, ["cheap", "forward-parity"]) == 2 / 6


def test_each_dtype_is_asked_what_its_faults_need() -> None:
    """`gradcheck` is asked in float64 alone, which is its first dtype."""
    cost = {"sizes": 0.6, "drawn-calls": 0.1, "gradcheck": 0.1, "layouts": 0.1}
    properties = ["forward-parity", "vjp-parity", "sizes", "drawn-calls", "gradcheck", "layouts"]
    noticed = {
        "in float32": ["layouts"],
        "in bfloat16": ["sizes", "drawn-calls"],
        "in float16": ["sizes"],
        "in float64": ["gradcheck"],
    }
    others = ["in bfloat16", "in float16", "in float64"]
    found = [quick_set.in_each_dtype(noticed, properties, others, cost, share) for share in (0.5, 0.7, 1.0)]
    assert found == [
        [*quick_set.ALWAYS],
        [*quick_set.ALWAYS, "drawn-calls"],
        [*quick_set.ALWAYS, "drawn-calls", "sizes"],
    ]
    assert quick_set.share_of(noticed, properties, [*quick_set.ALWAYS, "gradcheck"], others) == 0.5


def test_the_sentence_says_that_the_run_was_quick() -> None:
    report = of(*(row(name) for name in ONE_EACH[:3]), required=SAFE)
    left_out = ["sizes", "harvested-sizes"]
    hurried = replace(report, environment={**report.environment, "quick": left_out})
    assert sentence.overall(hurried) == (
        "Values and gradients are right in float32, and it is safe, as far as a quick run sees. "
        "The run was quick: it did not judge sizes and harvested sizes."
    )
    assert hurried.ok
    one, *others = report.cells
    several = replace(hurried, cells=(one, *others, replace(one, dtype="bfloat16")))
    assert "sizes and harvested sizes, and judged 2 of 3 in float32 alone." in sentence.overall(several)
    merged = merge([("a", hurried), ("b", replace(report, cells=report.cells[:1]))])
    assert merged.environment["quick"] == left_out


@pytest.mark.parametrize("option", ["--property=sizes", "--property=vjp-parity"])
def test_it_chooses_the_properties_itself(python: Run, option: str) -> None:
    done = python("-m", "harness", "judge", "--quick", option, "--backend=python-autograd", "--device=cpu")
    assert done.returncode == 4
    assert "--quick was given with --property" in done.stderr


def test_what_decides_is_judged_in_each_dtype_and_the_rest_in_one(python: Run) -> None:
    selected = ("--backend=python-autograd", "--operator=mlp", "--device=cpu", "--collect-only", "-n0")
    listed = python("-m", "harness", "judge", "--quick", *selected).stdout
    assert listed.count("test_forward_parity[") == listed.count("test_vjp_parity[") == 4
    for name in quick().in_each_dtype:
        assert listed.count(f"test_{name.replace('-', '_')}[") == 4
    assert listed.count("test_layouts[") == listed.count("test_gradient_subsets[") == 1
    assert "test_combinations[" not in listed
    assert "test_compile[" not in listed
