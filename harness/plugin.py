"""The pytest plugin: options, one test item a cell, and the report at the end.

A property's test asks for the fixture `cell` and hands it the property; all else is here. Cells travel from worker to
controller in the test reports' user properties, so `-n 2` gives the same report as one process.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Iterator
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch

from backends.base import CUDA
from harness import gpus, progress, workers
from harness import judge as court
from harness.drawing import PLAN
from harness.errors import HarnessError
from harness.isolation import Isolation, Limits
from harness.judge import Cell, Property
from harness.option_values import seconds, shard, whole
from harness.options import Selection, Slot, slots
from harness.plan import Shard
from harness.properties import all_properties
from harness.record import Record, plan_of
from harness.recorder import Recorder
from harness.report import jsonable
from harness.subject import told
from spec.contract import DTYPES

gpus.take_turns()  # before anything asks CUDA
_PROPERTIES = all_properties()  # imports them, so that they are bound with the rest
court.bind()

_CELL = "conformance-cell"
#: Bytes of GPU memory that a worker keeps in its cache from one cell to the next.
_KEPT = 2**30
_SEED = "conformance-examples-seed"
_ISOLATION = pytest.StashKey[Isolation]()
#: Names of the tests whose cells an earlier run has left.
_DONE = pytest.StashKey[frozenset[str]]()
_DONE_NAME = "conformance-done"
#: The group of the cells that take most of a GPU's memory.
_LARGE = "large"


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("conformance", "conformance of custom operators")

    def repeatable(name: str, meaning: str) -> None:
        group.addoption(f"--{name}", action="append", default=[], metavar=name.upper(), help=f"{meaning} (repeatable)")

    repeatable("operator", "judge this operator; default: all")
    repeatable("backend", "judge this backend; default: all, or none where --candidate is given")
    repeatable("device", "cpu, cuda or cuda-emulated; default: all that this machine has")
    repeatable("dtype", "float32, float64, float16 or bfloat16; default: all")
    repeatable("candidate", "judge any function: OPERATOR=FILE.py:FUNCTION or OPERATOR=package.module:FUNCTION")
    repeatable("backend-path", "a backend's folder, or a folder of backends, outside this repository")
    repeatable("spec-path", "a contract's file outside this repository")
    group.addoption("--report", metavar="FILE", help="where the JSON report goes; default: reports/conformance.json")
    group.addoption(
        "--shard", type=shard, default="1/1", metavar="K/N", help="judge the K-th of N parts; `merge` joins the reports"
    )
    group.addoption("--resume", metavar="FILE", help="judge what that partial report lacks, and complete it")
    group.addoption("--examples", type=whole(1), default=20, metavar="N", help="calls that hypothesis draws for a cell")
    group.addoption(
        "--examples-seed", type=whole(0), metavar="N", help="where it starts; default: another one each run"
    )
    group.addoption(
        "--isolate",
        choices=("auto", "on", "off"),
        default="auto",
        help="judge in a process of its own; auto: candidates; off: for a debugger",
    )
    group.addoption("--time-limit", type=seconds, default=300.0, metavar="S", help="seconds for one isolated cell")
    group.addoption("--memory-limit", type=whole(1), default=8, metavar="GB", help="memory for one isolated cell")
    group.addoption("--sanitize", action="store_true", help="build with AddressSanitizer and UBSan (`nox -s sanitize`)")


def _selection(config: pytest.Config) -> Selection:
    def texts(name: str) -> tuple[str, ...]:
        return tuple(config.getoption(name))

    return Selection(
        operators=texts("operator"),
        backends=texts("backend"),
        devices=texts("device"),
        dtypes=texts("dtype"),
        candidates=texts("candidate"),
        backend_paths=tuple(Path(text) for text in texts("backend_path")),
        spec_paths=tuple(Path(text) for text in texts("spec_path")),
        sanitize=bool(config.getoption("sanitize")),
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "xdist_group: which worker a cell goes to, where pytest-xdist is not loaded")
    is_worker = hasattr(config, "workerinput")
    selection = _selection(config)
    # Told here, an option that cannot be met ends the run with one sentence, and not with one a worker and file.
    if selection != Selection() and not is_worker:
        _slots(selection)
    given = config.getoption("examples_seed")
    PLAN.examples = config.getoption("examples")
    PLAN.seed = getattr(config, "workerinput", {}).get(_SEED, secrets.randbits(31) if given is None else given)
    config.stash[_DONE] = frozenset(getattr(config, "workerinput", {}).get(_DONE_NAME, ()))
    wanted = config.getoption("isolate")
    if wanted == "on" or (wanted == "auto" and selection.candidates):
        limits = Limits(config.getoption("time_limit"), config.getoption("memory_limit") * 2**30)
        isolation = config.stash[_ISOLATION] = Isolation(selection, limits)
        config.add_cleanup(isolation.stop)
    if not is_worker and not config.getoption("collectonly"):
        _record(config, selection)


def _record(config: pytest.Config, selection: Selection) -> None:
    """Have the run written down. What is wrong with its file is told now if the user named one."""
    recorder = Recorder(config, lambda: _begun(config, selection), _cells_of)
    config.pluginmanager.register(recorder, "conformance-recorder")
    if selection != Selection() or config.getoption("report") or config.getoption("resume"):
        config.stash[_DONE] = recorder.record.done


def _begun(config: pytest.Config, selection: Selection) -> tuple[Record, list[Slot]]:
    found = _slots(selection)
    earlier = config.getoption("resume")
    path = Path(config.getoption("report") or earlier or "reports/conformance.json")
    try:
        plan = plan_of(config, selection, found)
        return Record.begin(path, plan, Path(earlier) if earlier else None), found
    except HarnessError as error:
        raise pytest.UsageError(str(error)) from None


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what belongs to another shard, and what an earlier run has judged; put first what is large."""
    part, done = Shard.parse(config.getoption("shard")), config.stash[_DONE]
    kept = [item for item in items if part.holds(item.name) and item.name not in done]
    if len(kept) < len(items):
        config.hook.pytest_deselected(items=[item for item in items if item not in set(kept)])
        items[:] = kept
    items.sort(key=lambda item: all(mark.args != (_LARGE,) for mark in item.iter_markers("xdist_group")))


@pytest.hookimpl(trylast=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """By now there is a terminal reporter, where there will be one."""
    selection = _selection(session.config)
    progress.install(session.config, lambda nodeid: nodeid.endswith(_ids(selection)), _cells_of)


def _slots(selection: Selection) -> list[Slot]:
    try:
        return slots(selection)
    except HarnessError as error:
        raise pytest.UsageError(str(error)) from None


@cache
def _ids(selection: Selection) -> tuple[str, ...]:
    """How the names of the tests of cells end."""
    return tuple(f"[{slot.id}]" for slot in _slots(selection))


def _cells_of(report: pytest.TestReport) -> list[Cell]:
    """What a test recorded, in this process or in a worker."""
    return [Cell(**json.loads(str(value))) for key, value in report.user_properties if key == _CELL]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "slot" not in metafunc.fixturenames:
        return
    # By dtype: the first groups are those of float32, which take longest, and each is another operator's: so workers do
    # not begin by waiting for the same build.
    found = sorted(_slots(_selection(metafunc.config)), key=lambda slot: DTYPES.index(slot.dtype))
    property = _PROPERTIES.get(metafunc.function.__name__.removeprefix("test_").replace("_", "-"))
    groups = [_LARGE] * len(found) if property is not None and property.large else _groups(found)
    parameters = [
        pytest.param(slot, id=slot.id, marks=pytest.mark.xdist_group(group))
        for slot, group in zip(found, groups, strict=True)
    ]
    metafunc.parametrize("slot", parameters)


def _groups(found: list[Slot]) -> list[str]:
    """What goes to one worker: an operator in a dtype, whose oracles it then computes once.

    Where there are many workers, a backend's alone, or some of them would have nothing to do.
    """
    groups = [f"{slot.operator.name}-{slot.dtype}" for slot in found]
    at_work = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    if len(set(groups)) >= 2 * at_work:
        return groups
    return [f"{group}-{slot.backend}" for group, slot in zip(groups, found, strict=True)]


class Judge:
    """What a property's test gets: call it with the property."""

    def __init__(self, slot: Slot, request: pytest.FixtureRequest) -> None:
        self._slot, self._request = slot, request

    def __call__(self, property: Property) -> None:
        """Judge, record the cell, and fail or skip the test with the cell's reason."""
        try:
            cell = self._judged(property)
        except pytest.fail.Exception as error:  # pytest-timeout ends a test so
            why = f"{property.name} was not done in time, so it hangs or this machine is too slow for it: {error}"
            cell = self._slot.cell(property.name, court.NO_EVIDENCE, why)
        except Exception as error:
            why = f"the harness itself failed, which is no fault of the candidate: {told(error)}"
            self._record(self._slot.cell(property.name, court.NO_EVIDENCE, why))
            raise
        self._record(cell)
        if cell.verdict == court.FAIL:
            script = cell.figures.get("reproducer")
            pytest.fail(f"{cell.reason}\n\nThis shows it alone:\n\n{script}" if script else cell.reason, pytrace=False)
        if cell.verdict == court.NO_EVIDENCE:
            pytest.fail(f"no evidence: {cell.reason}", pytrace=False)
        if cell.verdict in (court.NOT_RUN, court.DECLARED):
            pytest.skip(f"{cell.verdict}: {cell.reason}")

    def _record(self, cell: Cell) -> None:
        self._request.node.user_properties.append((_CELL, json.dumps(jsonable(asdict(cell)))))

    def _judged(self, property: Property) -> Cell:
        isolation = self._request.config.stash.get(_ISOLATION, None)
        return self._slot.judge(property) if isolation is None else isolation.judge(self._slot, property.name)


@pytest.fixture
def cell(slot: Slot, request: pytest.FixtureRequest) -> Judge:
    """The judge of one (operator, backend, device, dtype)."""
    return Judge(slot, request)


@pytest.fixture(autouse=True)
def _one_thread_a_worker() -> Iterator[None]:
    """Workers side by side, each with one thread: small tensors gain nothing from more."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
    if torch.cuda.is_available() and torch.cuda.memory_reserved() > _KEPT:
        torch.cuda.empty_cache()  # gigabytes that no other worker on this GPU could use


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int | None:
    """What `-n auto` means: as many as cores and memory allow, where the user's own variable does not say it."""
    if "PYTEST_XDIST_AUTO_NUM_WORKERS" in os.environ:
        return None
    devices = _selection(config).devices
    return workers.of_this_machine(on_gpus=not devices or CUDA in devices)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Workers draw from the same seed, so that the backends of a run share oracles, and leave out the same tests."""
    node.workerinput[_SEED] = PLAN.seed
    node.workerinput[_DONE_NAME] = sorted(node.config.stash[_DONE])
