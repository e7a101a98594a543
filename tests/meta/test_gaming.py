"""Every attack of tests/zoo/gaming has the outcome that its registry states, and changes no file of the suite."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Hashable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from harness.report.cell import FAIL, PASS, Cell
from harness.report.report import Report
from harness.running import runner_process, sandbox, suite_files
from harness.running.candidate_process import Limits
from harness.running.isolation import Isolation
from harness.running.selection import Selection, slots
from tests.meta.conftest import ROOT, environment
from tests.meta.tiers import first_of_each
from tests.zoo.gaming import table
from tests.zoo.gaming.attack import (
    ALONE,
    CAUGHT,
    COMMAND_LINE,
    ENDS,
    FOLDER,
    GPU,
    HANGS,
    HARMLESS,
    IN_A_COPY,
    ISOLATED,
    LIMIT,
    OUTCOMES,
    READ,
    RESTARTED,
    RIGHT,
    TOGETHER,
    VALUE,
    Attack,
)
from tests.zoo.gaming.registry import ATTACKS, SHARED, TIMING
from tests.zoo.gaming.together import Together

#: Two workers at most: each computes the exact values anew, and tests of one fixture go to one worker.
_FIRST, _SECOND = pytest.mark.xdist_group("gaming-1"), pytest.mark.xdist_group("gaming-2")
#: Bytes for an isolated cell: an attack that takes memory costs no more.
_MEMORY = 2**30


def _of(*ways: int) -> list[Attack]:
    return [one for one in ATTACKS if one.way in ways]


def _kinds(attack: Attack) -> list[tuple[Any, ...]]:
    return [(attack.way, attack.outcome, attack.property), (attack.way, attack.shown)]


def _outcome(attack: Attack) -> Sequence[Hashable]:
    return [attack.outcome]


def _marked(*ways: int, keys: Callable[[Attack], Sequence[Hashable]] = _kinds) -> list[Any]:
    """The first attack with each outcome of a property, and of each kind of mistake; the others are long."""
    return [pytest.param(one, id=one.name, marks=marks) for one, marks in first_of_each(_of(*ways), keys)]


def _ids(attack: Attack) -> str:
    return attack.name


def _records() -> dict[str, tuple[int, int]]:
    """Size and time of each file in the folders of records and reports."""
    files = [file for name in ("results", "reports") for file in (ROOT / name).rglob("*") if file.is_file()]
    return {str(file): (file.stat().st_size, file.stat().st_mtime_ns) for file in files}


@pytest.fixture(autouse=True, scope="module")
def _nothing_changes() -> Iterator[None]:
    before = suite_files.digests(), _records()
    yield
    assert suite_files.changed(before[0], suite_files.digests()) == []
    assert _records() == before[1]
    assert not (Path(torch.__file__).parent / "written_by_an_attack.py").exists()


@pytest.fixture(autouse=True)
def _sandboxed() -> None:
    """Attacks that write, kill or leave children behind are not run without a sandbox."""
    if sandbox.why_none():
        pytest.skip(sandbox.why_none())


@pytest.fixture(scope="module")
def together() -> Iterator[Together]:
    with Together() as made:
        yield made


def _has_its_outcome(attack: Attack, wrong: Cell | None, right: Cell | None = None) -> None:
    """The cells of the wrong function and of the right one, where there are such."""
    match attack.outcome:
        case "caught":
            assert wrong is not None
            assert (wrong.verdict, bool(re.search(attack.says, wrong.reason))) == (FAIL, True), wrong.reason[:2000]
        case "harmless":
            assert wrong is not None or attack.shown == RIGHT
            assert wrong is None or (wrong.verdict == FAIL and re.search(attack.says, wrong.reason)), wrong
            assert right is not None
            assert (right.verdict, right.reason) == (PASS, "")
        case _:
            assert wrong is not None
            assert (wrong.verdict, wrong.reason) == (PASS, "")


def _judged(attack: Attack, runner: Together) -> tuple[Cell | None, Cell | None]:
    def of(attribute: str) -> Cell:
        return runner.judge(attack.file, attribute, attack.property, attack.examples)

    return None if attack.shown == RIGHT else of("lltm"), of("lltm_right") if attack.outcome == HARMLESS else None


@_FIRST
@pytest.mark.parametrize("attack", _marked(TOGETHER))
def test_attack_on_values(attack: Attack, together: Together) -> None:
    _has_its_outcome(attack, *_judged(attack, together))


@_SECOND
@pytest.mark.parametrize("attack", _marked(ALONE))
def test_attack_on_the_process(attack: Attack) -> None:
    with Together() as runner:
        _has_its_outcome(attack, *_judged(attack, runner))
        started = runner.started()
    assert started
    children = [words for words in started if "left-by-an-attack" in words]
    assert bool(children) == (attack.name == "leaves_children")
    assert runner.left() == []


@_SECOND
@pytest.mark.parametrize("attack", _marked(ISOLATED, keys=_outcome))
def test_attack_on_the_judge(attack: Attack, monkeypatch: pytest.MonkeyPatch) -> None:
    if "closed its connection" in attack.says:
        monkeypatch.setattr(runner_process, "_GRACE", 1.0)  # its process does not end by itself
    selection = Selection(candidates=(f"lltm={attack.file}:lltm",), dtypes=(attack.dtype,), devices=("cpu",))
    isolation = Isolation(selection, Limits(attack.seconds, _MEMORY))
    try:
        _has_its_outcome(attack, isolation.judge(slots(selection)[0], attack.property))
    finally:
        isolation.stop()


@_FIRST
@pytest.mark.parametrize("attack", _of(GPU), ids=_ids)
def test_attack_on_a_gpu(attack: Attack) -> None:
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    selection = Selection(candidates=(f"lltm={attack.file}:lltm",), dtypes=("float32",), devices=("cuda",))
    isolation = Isolation(selection, Limits())
    try:
        _has_its_outcome(attack, isolation.judge(slots(selection)[0], attack.property))
    finally:
        isolation.stop()


# Attacks on files, in a copy of the checkout


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The checkout, as far as a run needs it."""
    root = tmp_path_factory.mktemp("copy") / "suite"
    for name in ("harness", "spec", "backends", "tests/zoo"):
        shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__"))
    (root / "results" / "cpu").mkdir(parents=True)
    return root


def _in(copy: Path) -> dict[str, str]:
    home = copy.parent / "home"
    home.mkdir(exist_ok=True)
    # Python itself writes what it compiles, which is no change by an attack.
    places = {"HOME": str(home), "PYTHONPATH": str(copy), "PYTHONUSERBASE": str(home / "base")}
    places["PYTHONDONTWRITEBYTECODE"] = "1"
    return {**environment(), **places, "LLTM_CONFORMANCE_CACHE": str(copy.parent / "cache")}


#: Judges the wrong and the right function of each file, and says which files it changed; then it restores them.
_JUDGE_ALL = """
import json, shutil, sys
from dataclasses import asdict
from pathlib import Path
from harness.running import suite_files
from tests.zoo.gaming.together import Together

choice, names = sys.argv[1], sys.argv[2:]
here, kept = Path.cwd(), Path.cwd().with_name("kept")
shutil.copytree(here, kept, dirs_exist_ok=True)

def files():
    return {str(file): file.read_bytes() for root in (here, here.with_name("home"), here.with_name("cache"))
            for file in root.rglob("*") if file.is_file() and "scratch" not in file.parts}

with Together(choice) as runner:
    for name in names:
        digests, before = suite_files.digests(), files()
        file = here / "tests/zoo/gaming" / f"{name}.py"
        cells = [runner.judge(file, "lltm", "forward-parity")]
        told, after = suite_files.changed(digests, suite_files.digests()), files()
        changed = [path for path in {**before, **after} if before.get(path) != after.get(path)]
        if not changed:
            cells.append(runner.judge(file, "lltm_right", "forward-parity"))
        for path in changed:
            Path(path).unlink(missing_ok=True)
        shutil.copytree(kept, here, dirs_exist_ok=True)
        print(json.dumps([name, [asdict(cell) for cell in cells], told, changed], default=str), flush=True)
"""


#: For each attack: the cells, the files of the suite that a run names as changed, and all files that changed.
Written = dict[str, tuple[list[Cell], list[str], list[str]]]


@pytest.fixture(scope="module", params=sandbox.CHOICES)
def written(request: pytest.FixtureRequest, copy: Path) -> tuple[str, Written]:
    """What each attack on files did, with bubblewrap and without."""
    names = [attack.name for attack in _of(IN_A_COPY)]
    command = [sys.executable, "-c", _JUDGE_ALL, request.param, *names]
    run = subprocess.run(command, cwd=copy, env=_in(copy), capture_output=True, text=True, check=False, timeout=280)
    assert run.returncode == 0, run.stderr
    found = {}
    for line in run.stdout.splitlines():
        name, cells, told, changed = json.loads(line)
        found[name] = [Cell(**cell) for cell in cells], told, changed
    return request.param, found


@_FIRST
@pytest.mark.parametrize("attack", _marked(IN_A_COPY, keys=_outcome))
def test_attack_on_files(attack: Attack, written: tuple[str, Written]) -> None:
    """In bubblewrap nothing changes; without it, changed files of the suite are told."""
    choice, found = written
    cells, told, changed = found[attack.name]
    assert cells[0].verdict == FAIL
    assert re.search(attack.says, cells[0].reason)
    if choice == "auto":
        assert changed == []
        _has_its_outcome(attack, *cells)
    else:
        assert changed != []
        assert tuple(told) == attack.leaves


#: Judges one property twice: the process ends each time.
_JUDGE_TWICE = """
import json, sys
from dataclasses import asdict
from harness.running import suite_files
from harness.running.candidate_process import Limits
from harness.running.isolation import Isolation
from harness.running.selection import Selection, slots

file, property = sys.argv[1:]
selection = Selection(candidates=(f"lltm={file}:lltm",), dtypes=("float32",), devices=("cpu",))
isolation, before = Isolation(selection, Limits(60)), suite_files.digests()
cells = [asdict(isolation.judge(slots(selection)[0], property)) for _ in range(2)]
isolation.stop()
print(json.dumps([cells, suite_files.changed(before, suite_files.digests())], default=str))
"""


@_FIRST
@pytest.mark.parametrize("attack", _marked(RESTARTED, keys=_outcome))
def test_attack_on_the_next_start(attack: Attack, copy: Path) -> None:
    file = copy / "tests/zoo/gaming" / attack.file.name
    command = [sys.executable, "-c", _JUDGE_TWICE, str(file), attack.property]
    run = subprocess.run(command, cwd=copy, env=_in(copy), capture_output=True, text=True, check=False, timeout=280)
    assert run.returncode == 0, run.stderr
    cells, changed = json.loads(run.stdout)
    assert changed == []
    for cell in cells:
        _has_its_outcome(attack, Cell(**cell))


# Attacks on the command line


def _run(copy: Path, attack: str, *options: str) -> tuple[int, str, Path]:
    report = copy.parent / f"{attack}.json"
    candidate = copy / "tests/zoo/gaming" / f"{attack}.py"
    command = [sys.executable, "-m", "harness", "judge", f"--candidate=lltm={candidate}:lltm", "--dtype=float32"]
    run = subprocess.run(
        [*command, f"--report={report}", "-k", "forward_parity", *options],
        cwd=copy,
        env=_in(copy),
        capture_output=True,
        text=True,
        check=False,
        timeout=280,
    )
    return run.returncode, run.stdout + run.stderr, report


@_FIRST
@pytest.mark.parametrize("attack", _marked(COMMAND_LINE, keys=_outcome))
def test_attack_on_the_report(attack: Attack, copy: Path) -> None:
    code, text, report = _run(copy, attack.name)
    assert code != 0, text
    assert "\x1b" not in text
    read = Report.read(report)
    assert read.complete
    (cell,) = read.cells
    assert cell.verdict != PASS
    assert re.search(attack.says, cell.reason), cell


# The zoo itself


@pytest.fixture(scope="module")
def plain() -> dict[str, tuple[float | None, int]]:
    """How far off each function is in plain calls, in processes without the suite; or how its process ended."""
    asked = [
        [one.name, one.sizes, one.calls, 1 if one.shown == HANGS else 60]
        for one in ATTACKS
        if one.shown in (VALUE, ENDS, HANGS) and one.way != GPU
    ]
    folder = sandbox.scratch("lltm=attacks")
    command = sandbox.command([sys.executable, str(FOLDER / "plain_call.py"), str(ROOT)], folder)
    run = subprocess.run(
        command,
        input=json.dumps(asked),
        env=sandbox.environment(folder),
        capture_output=True,
        text=True,
        check=False,
        timeout=280,
    )
    assert run.returncode == 0, run.stderr
    lines = [json.loads(line) for line in run.stdout.splitlines()]
    return {line["name"]: (line["off"], line["code"]) for line in lines}


@_FIRST
@pytest.mark.parametrize("attack", [one for one in ATTACKS if one.shown not in (READ, RIGHT)], ids=_ids)
def test_it_is_wrong(attack: Attack, plain: dict[str, tuple[float | None, int]]) -> None:
    if attack.way == GPU:
        pytest.skip("no CUDA device")
    off, code = plain[attack.name]
    if attack.shown == VALUE:
        assert off is not None, code
        assert off > 1e-4
    else:
        assert off is None, f"it returned, and was off by {off}"
        assert (code == -14) is (attack.shown == HANGS)


def test_every_file_is_registered() -> None:
    names = [attack.name for attack in ATTACKS]
    assert len(names) == len(set(names)) >= 45
    assert {file.stem for file in FOLDER.glob("*.py")} == {*names, *TIMING, *SHARED}
    assert all(attack.mistake and attack.source for attack in ATTACKS)
    assert {attack.outcome for attack in ATTACKS} == set(OUTCOMES)
    assert all(bool(attack.why) for attack in ATTACKS if attack.outcome in (HARMLESS, LIMIT))
    assert all(bool(attack.says) for attack in ATTACKS if attack.outcome == CAUGHT)


def test_the_page_has_every_attack() -> None:
    page = table.DOCUMENT.read_text()
    assert table.written(page) == page, "out of date: python -m tests.zoo.gaming.table"
    assert all(attack.mistake in page for attack in ATTACKS)
