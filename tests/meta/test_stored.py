"""Expected results on disk are those that would be computed; what is damaged, changed or foreign is computed again."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from harness import discovery
from harness.building.cache import expected_root
from harness.judging import oracle, stored
from harness.judging.oracle import Expected, expected
from harness.judging.scenario import Scenario
from harness.judging.scenarios import smallest
from harness.properties import recurrence
from harness.running import sandbox
from spec.contract import Operator
from tests.meta.conftest import ROOT, Run, environment
from tests.meta.tiers import WHOLE

LLTM = discovery.operator("lltm")


@pytest.fixture(autouse=True)
def _nothing_in_memory() -> Iterator[None]:
    oracle.forget()
    recurrence._measure.cache_clear()
    yield
    oracle.forget()
    recurrence._measure.cache_clear()


@pytest.fixture
def computed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The operators whose results are computed, rather than read."""
    seen: list[str] = []
    compute = oracle._computed

    def noted(operator: Operator, *rest: Any) -> stored.Results:
        seen.append(operator.title)
        return compute(operator, *rest)

    monkeypatch.setattr(oracle, "_computed", noted)
    return seen


def _found(
    folder: Path | None, operator: Operator = LLTM, dtype: torch.dtype = torch.float32, **changes: Any
) -> Expected:
    oracle.forget()
    with stored.used(folder):
        return expected(operator, dataclasses.replace(smallest(operator), **changes), dtype)


def _same(one: Any, other: Any) -> bool:
    """Whether two dataclasses are equal in every bit."""
    if isinstance(one, torch.Tensor):
        return torch.equal(one.nan_to_num(nan=0.25), other.nan_to_num(nan=0.25)) and one.dtype == other.dtype
    if isinstance(one, dict):
        return list(one) == list(other) and all(_same(one[name], other[name]) for name in one)
    if dataclasses.is_dataclass(one):
        return all(_same(getattr(one, f.name), getattr(other, f.name)) for f in dataclasses.fields(one))
    return bool(one == other)


@pytest.mark.parametrize("name", discovery.operators())
@pytest.mark.parametrize("dtype", [torch.float16, torch.float64])
@pytest.mark.parametrize("values", ["normal", "unusual"])
def test_what_is_read_is_what_was_computed(
    name: str, dtype: torch.dtype, values: str, tmp_path: Path, computed: list[str]
) -> None:
    operator = discovery.operator(name)
    changes = {} if values == "normal" else {"values": operator.families[0].name}
    first, again, without = (_found(place, operator, dtype, **changes) for place in (tmp_path, tmp_path, None))
    assert len(computed) == 2, "once for the store, and once without it"
    assert _same(first, again)
    assert _same(first, without)


def test_a_trajectory_is_read_as_it_was_computed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def found() -> Any:
        recurrence._measure.cache_clear()
        with stored.used(tmp_path):
            return recurrence._measure(oracle.ByIdentity(LLTM), smallest(LLTM), torch.float32)

    first = found()
    monkeypatch.setattr(recurrence, "_computed", lambda *_: pytest.fail("it was computed again"))
    assert _same(first, found())


def _entries(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.expected"))


@pytest.mark.parametrize(
    "changes",
    [
        {"seed": 1},
        {"values": LLTM.families[0].name},
        {"cotangents": (("new_h", "ones"),)},
        {"cotangents": (("new_h", "missing"),)},
        {"layouts": (("input", "expanded"),)},
        {"sizes": (("batch", 4), ("input_features", 4), ("state_size", 5))},
    ],
)
def test_another_call_has_an_entry_of_its_own(changes: dict[str, Any], tmp_path: Path, computed: list[str]) -> None:
    _found(tmp_path)
    _found(tmp_path, **changes)
    assert len(computed) == len(_entries(tmp_path)) == 2


def test_another_dtype_and_another_form_have_entries_of_their_own(tmp_path: Path) -> None:
    layer_norm = discovery.operator("layer_norm")
    for operator in layer_norm.every_form():
        for dtype in (torch.float32, torch.float64):
            _found(tmp_path, operator, dtype)
    assert len(_entries(tmp_path)) == 2 * len(layer_norm.every_form())


@pytest.mark.parametrize("damage", ["cut", "flipped", "empty", "garbage"])
def test_a_damaged_entry_is_computed_again(damage: str, tmp_path: Path, computed: list[str]) -> None:
    first = _found(tmp_path)
    (entry,) = _entries(tmp_path)
    data = entry.read_bytes()
    flipped = bytes([data[-1] ^ 1])
    entry.write_bytes({"cut": data[:-9], "flipped": data[:-1] + flipped, "empty": b"", "garbage": b"x" * 500}[damage])
    assert _same(first, _found(tmp_path))
    assert len(computed) == 2
    assert entry.read_bytes() == data, "and it is written again"


def test_a_contract_that_a_program_has_changed_is_not_kept(tmp_path: Path, computed: list[str]) -> None:
    changed = dataclasses.replace(LLTM, forward=LLTM.forward)
    _found(tmp_path, changed)
    _found(tmp_path, changed)
    assert len(computed) == 2
    assert _entries(tmp_path) == []


def test_another_suite_has_a_folder_of_its_own_and_old_ones_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "suite0-outside").mkdir()  # of a contract from outside: other suites do not drive it out
    for number in range(stored.SUITES + 2):
        monkeypatch.setattr(stored, "_suite", lambda number=number: f"suite{number}")
        _found(tmp_path)
    names = sorted(folder.name for folder in tmp_path.iterdir())
    assert names == ["suite0-outside", *(f"suite{number}" for number in range(2, stored.SUITES + 2))]


def test_a_command_of_the_suite_is_no_part_of_a_contract_from_outside() -> None:
    """The server has none: without this, what a judge has computed would be computed again with the server."""
    asked = "from harness.judging import stored; print([name for name, _ in stored._files_from_outside()])"
    script = f"import sys, harness.__main__ as main; sys.modules['__main__'] = main; {asked}"
    run = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, env=environment(), capture_output=True, text=True, check=True
    )
    assert run.stdout.strip() == "[]"


def test_a_folder_that_cannot_be_written_to_costs_only_time(tmp_path: Path) -> None:
    place = tmp_path / "file"
    place.write_text("no folder")
    assert _same(_found(place), _found(None))


def test_a_large_result_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored, "LARGEST", 100)
    _found(tmp_path)
    assert _entries(tmp_path) == []


CONTRACT = """
from pathlib import Path
import helper_of_a_contract
from spec.contract import Case, TensorArg
from spec.derived import Reference

REFERENCE = Reference(helper_of_a_contract.reference, tensors=("x",), attributes={})
OPERATOR = REFERENCE.operator(
    "stored_from_outside",
    inputs=(TensorArg("x", ("batch", "features")),),
    outputs=(TensorArg("y", ("batch", "features")),),
    cases=(Case("small", {"batch": 3, "features": 4}, "test", frozenset()),),
    families=(),
)
"""


def test_a_contract_from_outside_depends_on_what_it_imports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    helper = tmp_path / "helper_of_a_contract.py"
    helper.write_text("def reference(x):\n    return 2 * x\n")
    (tmp_path / "contract.py").write_text(CONTRACT)
    monkeypatch.syspath_prepend(tmp_path)
    operator = discovery.operator("stored_from_outside", (tmp_path / "contract.py",))
    store = tmp_path / "store"
    scenario = Scenario((("batch", 3), ("features", 4)))
    for text in ("2 * x", "3 * x"):
        helper.write_text(f"def reference(x):\n    return {text}\n")
        oracle.forget()
        with stored.used(store):
            expected(operator, scenario, torch.float32)
    assert len(list(store.iterdir())) == 2, "another helper, another folder"


def test_packages_of_an_environment_below_this_one_are_known_by_their_versions(tmp_path: Path) -> None:
    """A virtual environment may lie on top of another one: to digest all files of torch takes longer than an oracle."""
    inside = (
        "from harness.judging import stored; import torch; print(*[name for name, _ in stored._files_from_outside()])"
    )
    packages = tmp_path / "lib" / "site-packages"
    for name, text in (("sited", ""), ("sited-1.dist-info/METADATA", "Name: sited\nVersion: 1\n"), ("developed", "")):
        place = packages / name if "." in name else (packages if name == "sited" else tmp_path) / f"{name}.py"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    run = subprocess.run(
        [sys.executable, "-c", f"import sited, developed; {inside}"],
        cwd=ROOT,
        env={**environment(), "PYTHONPATH": f"{ROOT}:{packages}:{tmp_path}"},
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    assert run.stdout.split() == ["developed"]


# Foreign code


@pytest.mark.skipif(bool(sandbox.why_none()), reason=sandbox.why_none())
def test_a_sandbox_hides_the_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LLTM_CONFORMANCE_CACHE", str(tmp_path / "cache"))
    _found(expected_root())
    (entry,) = _entries(expected_root())
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    asked = f"from pathlib import Path; print(Path({str(entry)!r}).exists(), Path({str(expected_root())!r}).exists())"
    done = subprocess.run(
        sandbox.command([sys.executable, "-c", asked], scratch), capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.split() == ["False", "True"]


@pytest.mark.skipif(bool(sandbox.why_none()), reason=sandbox.why_none())
def test_a_store_that_is_made_while_a_candidate_runs_is_hidden_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LLTM_CONFORMANCE_CACHE", str(tmp_path / "cache"))
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    asked = f"from pathlib import Path; input(); print(list(Path({str(expected_root())!r}).iterdir()))"
    command = sandbox.command([sys.executable, "-c", asked], scratch)
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        _found(expected_root())
        assert len(_entries(expected_root())) == 1
        said, _ = process.communicate("\n", timeout=60)
    assert said.strip() == "[]"


_ONE_PROPERTY = ("--operator=lltm", "--device=cpu", "--dtype=float32", "--property=forward-parity", "-n0")


def _judged(python: Run, cache: Path, *options: str) -> list[Path]:
    """The entries after a run that judges one property."""
    judge = ("-m", "harness", "judge", *_ONE_PROPERTY, f"--report={cache / 'report.json'}", *options)
    run = python(*judge, LLTM_CONFORMANCE_CACHE=str(cache))
    assert run.returncode == 0, run.stdout + run.stderr
    return _entries(cache / "expected")


@pytest.mark.long(WHOLE)
def test_a_run_without_a_sandbox_leaves_no_store(python: Run, tmp_path: Path) -> None:
    """Its candidate may have changed what later runs would read."""
    assert _judged(python, tmp_path, "--backend", "python-autograd")
    candidate = f"lltm={Path(__file__).parent / 'data' / 'strangers' / 'plain.py'}:lltm"
    assert _judged(python, tmp_path, "--candidate", candidate, "--sandbox", "off") == []


@pytest.mark.skipif(bool(sandbox.why_none()), reason=sandbox.why_none())
def test_a_candidate_in_a_sandbox_is_judged_with_the_store(python: Run, tmp_path: Path) -> None:
    candidate = f"lltm={Path(__file__).parent / 'data' / 'strangers' / 'plain.py'}:lltm"
    assert _judged(python, tmp_path, "--candidate", candidate)
