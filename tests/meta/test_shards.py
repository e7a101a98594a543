"""A run divided over machines: each cell is in one shard, all shards are the whole, and merging hides no failure."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.__main__ import main
from harness.errors import UsageError
from harness.properties import all_properties
from harness.pytest_plugin.names import of_cell as name_of
from harness.pytest_plugin.names import parts, property_of
from harness.pytest_plugin.plugin import _DONE, _ISOLATION, pytest_collection_modifyitems
from harness.report.cell import DECLARED, FAIL, NO_EVIDENCE, NOT_RUN, PASS, VERDICTS
from harness.report.levels import LEVELS
from harness.report.merge import merge
from harness.report.report import Report
from harness.report.shards import RunPlan, Shard, digest_of_files
from harness.running.selection import Selection, slots
from tests.meta.conftest import ROOT, Run
from tests.meta.reports import cell, of
from tests.meta.tiers import WHOLE

PLAN = RunPlan("asked", "files", shards=2, asked=1)
NAMES = [
    f"test_{name.replace('-', '_')}[lltm-{backend}-cpu-{dtype}]"
    for name, backend, dtype in product(all_properties(), ("aten-cpp", "triton"), ("float32", "float64"))
]


def shard(number: int, *cells: Any, finished: bool = True, **changes: Any) -> Report:
    """The report of one of two shards."""
    plan = replace(PLAN, begun=(number,), finished=(number,) if finished else (), **changes)
    return replace(of(*cells, complete=False), plan=plan)


@given(count=st.integers(1, 200), names=st.lists(st.text(), max_size=20))
def test_every_test_is_in_one_shard(count: int, names: list[str]) -> None:
    for name in names:
        assert sum(Shard(number, count).holds(name) for number in range(1, count + 1)) == 1


def test_shards_are_of_about_one_size() -> None:
    sizes = [sum(Shard(number, 4).holds(name) for name in NAMES) for number in range(1, 5)]
    assert sum(sizes) == len(NAMES)
    assert min(sizes) > len(NAMES) / 8


@given(st.text(max_size=12) | st.from_regex(r"-?\d{0,8}/-?\d{0,8}", fullmatch=True))
def test_what_is_no_shard_is_told(text: str) -> None:
    number, _, count = text.partition("/")
    if re.fullmatch(r"[0-9]+/[0-9]{1,6}", text) and 1 <= int(number) <= int(count):
        assert Shard.parse(text) == Shard(int(number), int(count))
    else:
        with pytest.raises(UsageError) as error:
            Shard.parse(text)
        assert str(error.value).startswith(f"--shard was {text!r}, but should be K/N")


class _Config:
    """The part of pytest's config that the hook uses."""

    def __init__(self, shard: str, done: frozenset[str] = frozenset()) -> None:
        self._shard, self.hook, self.deselected = shard, self, []
        self.stash: dict[Any, Any] = {_DONE: done}

    def getoption(self, name: str) -> str:
        assert name == "shard"
        return self._shard

    def pytest_deselected(self, items: list[Any]) -> None:
        self.deselected = items


@dataclass(frozen=True)
class _Item:
    name: str
    callspec: Any = None

    def iter_markers(self, name: str) -> Iterator[pytest.Mark]:
        return iter(())


def _collected(shard: str, done: frozenset[str] = frozenset()) -> list[str]:
    items, config = [_Item(name) for name in NAMES], _Config(shard, done)
    pytest_collection_modifyitems(config, items)  # type: ignore[arg-type]
    assert sorted(item.name for item in (*items, *config.deselected)) == sorted(NAMES)
    return [item.name for item in items]


def _in_order(tests: list[str]) -> list[str]:
    """The decisive properties first, then by level, else in pytest's order."""
    known = all_properties()

    def place(test: str) -> tuple[int, int]:
        name = property_of(parts(test)[0])
        first = ["forward-parity", "vjp-parity", name].index(name)
        return first, LEVELS.index(known[name].level) if first == 2 else 0

    return sorted(tests, key=place)


def test_values_are_judged_first() -> None:
    found = [property_of(parts(test)[0]) for test in _collected("1/1")]
    assert found[:8] == ["forward-parity"] * 4 + ["vjp-parity"] * 4
    levels = [LEVELS.index(all_properties()[name].level) for name in found[8:]]
    assert levels == sorted(levels)


def test_isolated_candidates_take_turns() -> None:
    """Processes are started for each turn, so each candidate has one; within it, the order is as ever."""
    candidates = ("lltm=tests/meta/wrong_cells.py:right", "lltm=tests/meta/wrong_cells.py:swapped_gates")
    places = slots(Selection(candidates=candidates, devices=("cpu",), dtypes=("float32", "float64")))
    tests = ("test_layouts", "test_vjp_parity", "test_forward_parity")
    found = [(test, slot) for test in tests for slot in places]
    items = [_Item(f"{test}[{slot.id}]", SimpleNamespace(params={"slot": slot})) for test, slot in found]
    config = _Config("1/1")
    config.stash[_ISOLATION] = None
    pytest_collection_modifyitems(config, items)  # type: ignore[arg-type]
    assert [item.name for item in items] == [
        f"{test}[lltm-{name}-cpu-{dtype}]"
        for name in ("right", "swapped_gates")
        for test in reversed(tests)
        for dtype in ("float32", "float64")
    ]


@pytest.mark.parametrize("count", [1, 2, 5])
def test_pytest_is_left_with_the_shard(count: int) -> None:
    shards = [_collected(f"{number}/{count}") for number in range(1, count + 1)]
    assert sorted(name for names in shards for name in names) == sorted(NAMES)
    assert all(names == [name for name in _in_order(NAMES) if name in names] for names in shards)


def test_what_was_judged_before_is_left_out() -> None:
    assert _collected("1/1", frozenset(NAMES[:5])) == _in_order(NAMES[5:])
    found = cell(backend="aten-cpp", property="forward-parity")
    assert name_of(found) in NAMES


@pytest.mark.long(WHOLE)
def test_two_shards_are_the_run(conformance: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A real run: three properties of one function, whole and in two shards."""
    (tmp_path / "k.py").write_text("from spec.lltm import forward as right\n")
    asked = ["rejects_wrong_calls error_messages no_side_effects", f"--candidate=lltm={tmp_path}/k.py:right"]
    asked += ["--dtype=float32", "--dtype=float64", "--device=cpu", "--isolate=off"]
    parts = [tmp_path / f"{number}.json" for number in (1, 2)]
    for number, path in enumerate(parts, 1):
        conformance(*asked, f"--shard={number}/2", f"--report={path}")
    conformance(*asked, f"--report={tmp_path / 'whole.json'}")
    whole, *halves = (Report.read(path) for path in (tmp_path / "whole.json", *parts))
    assert whole.complete
    assert len(whole.cells) == 6
    assert all(not half.complete and half.cells for half in halves)
    joined = tmp_path / "joined.json"
    monkeypatch.setattr(sys, "argv", ["harness", "merge", *map(str, parts), "-o", str(joined)])
    assert main() == 0, "a function without checks of its arguments fails two properties, which are not required"
    found = Report.read(joined)
    assert found.complete
    assert [(c.key, c.verdict, c.reason) for c in found.cells] == [(c.key, c.verdict, c.reason) for c in whole.cells]


def test_a_shard_may_have_no_cell(conformance: Run, tmp_path: Path) -> None:
    """It has a report, which the joined one needs; a selection that no shard has is not green."""
    asked = ["layouts", "--operator=swiglu", "--backend=torch-native", "--device=cpu", "--dtype=float32"]
    paths = [tmp_path / f"{number}.json" for number in (1, 2, 3)]
    for number, path in enumerate(paths, start=1):
        run = conformance(*asked, f"--shard={number}/3", f"--report={path}")
        assert run.returncode == 0, run.stdout
        assert ("No cell is in shard" in run.stdout) == (not Report.read(path).cells)
    found = [Report.read(path) for path in paths]
    assert sorted(len(report.cells) for report in found) == [0, 0, 1]
    assert merge([(path.name, report) for path, report in zip(paths, found, strict=True)]).complete
    one = next(path for path, report in zip(paths, found, strict=True) if report.cells)
    assert not merge([("one", Report.read(one))]).complete
    nothing = conformance(*asked, "-k", "typo", "--shard=1/3", f"--report={tmp_path / 'none.json'}")
    assert nothing.returncode != 0
    assert not (tmp_path / "none.json").exists()


def test_a_run_that_ends_before_its_first_cell_is_no_empty_shard(conformance: Run, tmp_path: Path) -> None:
    (tmp_path / "stopper.py").write_text("def pytest_runtest_setup(item):\n    raise KeyboardInterrupt\n")
    asked = ["layouts", "--operator=swiglu", "--backend=torch-native", "--device=cpu", "--dtype=float32"]
    run = conformance(*asked, "-p", "stopper", f"--report={tmp_path / 'r.json'}", PYTHONPATH=f"{ROOT}:{tmp_path}")
    assert "the run did not finish (0 of 1 cells)" in run.stdout
    assert "No cell is in" not in run.stdout


# Merging


def test_shards_join_and_missing_ones_are_told() -> None:
    one, two = shard(1, cell()), shard(2, cell(FAIL, property="layouts"))
    both = merge([("a", one), ("b", two)])
    assert both.complete
    assert not both.ok
    assert both.plan == replace(PLAN, begun=(1, 2), finished=(1, 2), asked=2)
    assert [c.verdict for c in both.cells] == [FAIL, PASS]
    alone = merge([("a", one)])
    assert not alone.complete
    assert alone.why_partial() == "shard 2 of 2 is missing"
    broken = merge([("a", one), ("b", shard(2, cell(property="layouts"), finished=False))])
    assert not broken.complete
    assert broken.why_partial() == "shard 2 of 2 is not finished"


def test_reports_with_fewer_cells_than_were_asked_for_join_to_a_partial_one() -> None:
    """Whatever they say of themselves."""
    whole = replace(of(cell()), plan=replace(PLAN, shards=1, begun=(1,), finished=(1,), asked=37))
    few = merge([("a", whole)])
    assert not few.complete
    assert few.why_partial() == "the run did not finish (1 of 37 cells)"
    assert not merge([("a", whole), ("b", of(cell(property="layouts")))]).complete
    second = shard(2, cell(property="layouts"))
    assert second.plan is not None
    parts = merge([("a", shard(1, cell())), ("b", replace(second, plan=replace(second.plan, asked=2)))])
    assert parts.why_partial() == "shard 2 of 2 is not finished"


@pytest.mark.parametrize(
    ("other", "says"),
    [
        (shard(1, cell(property="layouts")), "both have shard 1, and either may be right"),
        (shard(2, cell(), digest="other"), "they are shards of different runs"),
        (shard(2, cell(), sources="other"), "the files of the suite differ between them"),
        (shard(2, cell(), shards=3), "the one is shard 1 of 2, the other shard 2 of 3"),
        (of(cell(property="layouts")), "the one is shard 1 of 2, the other no shard"),
        (shard(2, cell(FAIL)), "contradict each other: lltm/mine/cpu/float32/sizes is pass in the one and fail in the"),
        (replace(shard(2), environment={**of().environment, "torch": "3"}), "torch was '2.13' and '3'"),
        (replace(shard(2), environment={**of().environment, "cpu": "b"}), "cpu was 'a CPU' and 'b'; --any-cpu lets"),
    ],
    ids=["twice", "options", "files", "count", "whole", "verdict", "torch", "cpu"],
)
def test_what_does_not_belong_together_is_not_joined(other: Report, says: str) -> None:
    for named in ([("a", shard(1, cell())), ("b", other)], [("b", shard(2, cell(property="fine"))), ("a", other)]):
        if named[0][0] == "b" and says.startswith(("both", "contradict")):
            continue
        with pytest.raises(UsageError, match=re.escape(says) if named[0][0] == "a" else "cannot be merged"):
            merge(named)


@pytest.mark.parametrize(("one", "other"), list(product(VERDICTS, VERDICTS)))
def test_no_two_verdicts_are_joined_that_both_claim_something(one: str, other: str) -> None:
    named = [("a", of(cell(one))), ("b", of(cell(other)))]
    if one != other and NOT_RUN not in (one, other):
        with pytest.raises(UsageError, match="contradict each other"):
            merge(named)
        return
    (found,) = merge(named).cells
    claims = [verdict for verdict in (one, other) if verdict != NOT_RUN]
    assert found.verdict == (claims[0] if claims else NOT_RUN)


def test_processors_may_differ_where_that_is_allowed() -> None:
    far = replace(shard(2, cell(property="layouts")), environment={**of().environment, "cpu": "b"})
    joined = merge([("a", shard(1, cell())), ("b", far)], any_cpu=True)
    assert joined.complete
    assert joined.environment["cpu"] == "a CPU | b"


def test_runs_of_different_places_join_as_before() -> None:
    one, two = of(cell(DECLARED)), of(cell(NO_EVIDENCE, property="layouts"))
    assert merge([("a", one), ("b", two)]).complete
    assert not merge([("a", one), ("b", replace(two, complete=False))]).complete


def test_a_joined_report_requires_what_the_strictest_required() -> None:
    one, two = replace(of(cell()), required="safe"), replace(of(cell(property="layouts")), required="pytorch")
    assert merge([("a", one), ("b", two)]).required == merge([("b", two), ("a", one)]).required == "pytorch"
    assert merge([("a", one)]).required == "safe"


def test_the_digest_is_of_names_and_contents_alone(tmp_path: Path) -> None:
    for folder in ("one", "two"):
        (tmp_path / folder / "package" / "__pycache__").mkdir(parents=True)
        (tmp_path / folder / "package" / "a.py").write_text("1")
        (tmp_path / folder / "package" / "__pycache__" / "a.pyc").write_text(folder)
    digests = [digest_of_files([tmp_path / folder / "package"]) for folder in ("one", "two")]
    assert digests[0] == digests[1]
    (tmp_path / "two" / "package" / "a.py").write_text("2")
    assert digest_of_files([tmp_path / "two" / "package"]) != digests[0]
