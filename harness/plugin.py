"""The pytest plugin: options, one test item a cell, and the report at the end.

A property's test asks for the fixture `cell` and hands it the property; all else is here. Cells travel from worker to
controller in the test reports' user properties, so `-n 2` gives the same report as one process.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch

from harness import judge as court
from harness import progress, tables
from harness.drawing import PLAN
from harness.errors import HarnessError
from harness.isolation import Isolation, Limits
from harness.judge import Cell, Property
from harness.options import Selection, Slot, slots
from harness.properties import all_properties
from harness.report import Report, jsonable
from harness.subject import told

all_properties()  # imports them, so that they are bound with the rest
court.bind()

_CELL = "conformance-cell"
#: Bytes of GPU memory that a worker keeps in its cache from one cell to the next.
_KEPT = 2**30
_SEED = "conformance-examples-seed"
_ISOLATION = pytest.StashKey[Isolation]()


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
    group.addoption("--examples", type=int, default=20, metavar="N", help="calls that hypothesis draws for a cell")
    group.addoption("--examples-seed", type=int, metavar="N", help="where it starts; default: another one each run")
    group.addoption(
        "--isolate",
        choices=("auto", "on", "off"),
        default="auto",
        help="judge in a process of its own; auto: candidates; off: for a debugger",
    )
    group.addoption("--time-limit", type=float, default=300.0, metavar="S", help="seconds for one isolated cell")
    group.addoption("--memory-limit", type=int, default=8, metavar="GB", help="memory for one isolated cell")
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
    if not is_worker:  # a run that dies must not leave the report of an earlier one behind as its own
        _report_path(config).unlink(missing_ok=True)
    wanted = config.getoption("isolate")
    if wanted == "on" or (wanted == "auto" and selection.candidates):
        limits = Limits(config.getoption("time_limit"), config.getoption("memory_limit") * 2**30)
        isolation = config.stash[_ISOLATION] = Isolation(selection, limits)
        config.add_cleanup(isolation.stop)
    config.pluginmanager.register(_Recorder(config), "conformance-recorder")


@pytest.hookimpl(trylast=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """By now there is a terminal reporter, where there will be one."""
    selection = _selection(session.config)
    progress.install(session.config, lambda nodeid: nodeid.endswith(_ids(selection)), _cells_of)


def _report_path(config: pytest.Config) -> Path:
    return Path(config.getoption("report") or "reports/conformance.json")


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
    found = _slots(_selection(metafunc.config))
    # Workers keep to a dtype, whose oracles they then compute once; where there is only one, to a backend.
    one_dtype = len({slot.dtype for slot in found}) == 1
    groups = [slot.backend if one_dtype else str(slot.dtype) for slot in found]
    parameters = [
        pytest.param(slot, id=slot.id, marks=pytest.mark.xdist_group(group))
        for slot, group in zip(found, groups, strict=True)
    ]
    metafunc.parametrize("slot", parameters)


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
def pytest_configure_node(node: Any) -> None:
    """Workers draw from the same seed, so that the backends of a run share oracles."""
    node.workerinput[_SEED] = PLAN.seed


class _Recorder:
    """Collects cells in the process that talks to the user, and writes the report."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._cells: list[Cell] = []
        self._interrupted = False

    @property
    def _is_worker(self) -> bool:
        return hasattr(self._config, "workerinput")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" and not self._is_worker:
            self._cells += _cells_of(report)
        elif str(report.when) == "???":  # xdist says so of a worker that died
            self._cells += self._of_a_crash(report)

    def _of_a_crash(self, report: pytest.TestReport) -> list[Cell]:
        test, _, slot_id = report.nodeid.rpartition("::")[2].removesuffix("]").partition("[")
        why = "the process died while this was judged: a crash in compiled code, an exit, or no memory left"
        property = test.removeprefix("test_").replace("_", "-")
        found = _slots(_selection(self._config))
        return [slot.cell(property, court.FAIL, why) for slot in found if slot.id == slot_id]

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        # -x and --maxfail leave cells out too.
        self._interrupted |= bool(session.shouldfail or session.shouldstop)

    def pytest_keyboard_interrupt(self) -> None:
        self._interrupted = True

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if not self._cells:
            return
        report = Report.of(self._cells, complete=not self._interrupted)
        path = _report_path(self._config)
        report.write(path)
        console = tables.console(terminalreporter._tw._file)
        console.print()
        tables.print_report(report, console)
        console.print(f"\nreport: {path}")
