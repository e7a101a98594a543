"""The pytest plugin: options, one test item for each cell, and the report at the end.

The test of a property takes the fixture `cell` and calls it with the property; everything else is here. Workers send
cells to the controller in the user properties of test reports, so `-n 2` gives the same report as one process.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict, replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch

from backends.base import CUDA
from harness import discovery
from harness.building.cache import expected_root
from harness.candidate import Candidate
from harness.errors import HarnessError, Unavailable, UsageError
from harness.executing.lifeline import end_with_parent
from harness.executing.runner import lost_device
from harness.judging import judge as judging
from harness.judging import stored
from harness.judging.one_thread import one_thread
from harness.judging.property import Property
from harness.judging.subject import Examples, one_line
from harness.properties import all_properties
from harness.properties.imports import PROPERTY as IMPORTS
from harness.pytest_plugin import asked_properties, gpu_turns, names, progress, workers
from harness.pytest_plugin.hangs import Hangs
from harness.pytest_plugin.invocation import SUITE
from harness.pytest_plugin.partial_report import Record, plan_of
from harness.pytest_plugin.recorder import ELSEWHERE, ELSEWHERE_NAME, Recorder
from harness.report.cell import CUT_OFF, DECLARED, FAIL, NO_EVIDENCE, NOT_RUN, Cell
from harness.report.levels import LEVELS, is_required
from harness.report.parts import is_part
from harness.report.report import jsonable
from harness.report.shards import UNDIVIDED, Shard
from harness.running import (
    candidate_files,
    drawn_seed,
    foreseeing,
    quick,
    sandbox,
    selection_options,
    suite_files,
    suite_process,
)
from harness.running.candidate_process import Limits, lost
from harness.running.isolation import Isolation
from harness.running.option_values import seconds, shard, whole
from harness.running.selection import Selection, Slot, not_installed, of_packages, slots, to_build
from spec.contract import DTYPES

gpu_turns.take_turns()  # before anything uses CUDA
workers.compile_alone()
# Imports the properties, so that their references to library functions are saved before a candidate can replace any.
_PROPERTIES = all_properties()

_CELL = "conformance-cell"
#: pytest-xdist sets it in its workers.
_WORKER = "PYTEST_XDIST_WORKER"
#: Bytes of GPU memory that a worker keeps in its cache from one cell to the next.
_KEPT = 2**30
_SEED = "conformance-examples-seed"
_ISOLATION = pytest.StashKey[Isolation]()
#: The processes that judge after an implementation has cost this one its CUDA device.
_LOST = pytest.StashKey[Isolation]()
#: Seconds that one of those has for a cell: pytest's limit in pyproject.toml.
_LONGEST = 600.0
_EXAMPLES = pytest.StashKey[Examples]()
_SELECTED = pytest.StashKey[Selection]()
#: Names of the tests whose cells are in the report of an earlier run.
_DONE = pytest.StashKey[frozenset[str]]()
_DONE_NAME = "conformance-done"
#: Why a candidate cannot be imported, by its text.
_BROKEN = pytest.StashKey[dict[str, str]]()
_BROKEN_NAME = "conformance-broken"
#: Warnings that say nothing about an implementation, each with its source.
_HARMLESS = (
    # pytest-benchmark warns so whenever pytest-xdist is used; benchmarks run without pytest-xdist
    ".*Benchmarks are automatically disabled.*",
    # torch.compile of torch 2.11 imports what Python 3.12's torch deprecates
    ".*torch.jit.*:DeprecationWarning",
    # torch.compile recommends TF32 once a process on a GPU that has it; the suite judges float32 without TF32
    "TensorFloat32 tensor cores for float32 matrix multiplication available but not enabled.*:UserWarning",
    # Dynamo of torch 2.11 reads .grad of the arguments of a compiled function, which need not be leaves
    "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed.*:UserWarning",
    # Inductor of torch 2.11 for CUDA says so of a softmax whose rows it splits among blocks, in lines of their own
    r"\s*Online softmax is disabled on the fly.*:UserWarning",
    # An autograd thread whose first call is a matrix product warns once, and creates the missing context
    "Attempting to run cuBLAS, but there was no current CUDA context.*:UserWarning",
    # torch.compile itself triggers this for a torch.autograd.Function
    ".*should not be instantiated.*:DeprecationWarning",
    # torch.func under vmap runs an operator without a batching rule once for each sample: slow, and right
    "There is a performance drop because we have not yet implemented the batching rule.*:UserWarning",
)
#: Names of the files and folders of tests that judge whatever is selected.
_JUDGING = ("conformance", "test_properties.py")
#: The group of the cells that take most of a GPU's memory.
_LARGE = "large"
#: Groups of cells for each worker, so that one long group does not keep all others waiting at the end.
_EACH = 7
#: What is judged first, in every dtype: whether values and gradients are right at all.
_DECISIVE = ("forward-parity", "vjp-parity")
#: The properties with cells of more than half a minute on a GPU, those of the longest first: a worker that began with
#: one of them last would end minutes after the others.
_DEAREST = (
    "harvested-sizes",
    "combinations",
    "global-state",
    "gradient-subsets",
    "drawn-calls",
    "compile",
    "sizes",
    "no-side-effects",
    "memory",
)
#: How many groups the properties make of an operator in a dtype.
_PARTS = 1 + len(_DEAREST) + len(LEVELS)


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("conformance", "conformance of custom operators")

    selection_options.add(group.addoption)
    group.addoption(
        "--property",
        action="append",
        default=[],
        metavar="NAME",
        help="judge this property; default: all (repeatable)",
    )
    group.addoption(
        "--quick",
        action="store_true",
        help="judge values and gradients, and what notices most mistakes for its cost, in about two seconds",
    )
    group.addoption("--watch", metavar="FILE", help="of `judge`: judge again after each change of it (repeatable)")
    group.addoption("--report", metavar="FILE", help="where the JSON report goes; default: reports/conformance.json")
    group.addoption(
        "--shard", type=shard, default="1/1", metavar="K/N", help="judge the K-th of N parts; `merge` joins the reports"
    )
    group.addoption(
        "--divide",
        action="store_true",
        help="with --shard: share out the calls of a cell too, where many are made; for kernels that compile for each",
    )
    group.addoption(
        "--level",
        choices=LEVELS,
        help="the last level that is required for exit code 0; default: safe for candidates, production for backends",
    )
    group.addoption("--resume", metavar="FILE", help="judge the missing cells of that partial report, and complete it")
    group.addoption("--examples", type=whole(1), default=20, metavar="N", help="calls that Hypothesis draws for a cell")
    group.addoption(
        "--examples-seed",
        type=drawn_seed.seed_or_random,
        metavar="N",
        help="seed of the drawn calls, or random; default: the same in each run (see docs/verify.md)",
    )
    group.addoption(
        "--isolate",
        choices=("auto", "on", "off"),
        default="auto",
        help="judge in a separate process; auto: candidates and packages; off: never, for a debugger",
    )
    group.addoption(
        "--sandbox",
        choices=sandbox.CHOICES,
        default="auto",
        help="auto: candidates run in bubblewrap where it is installed; off: never, for a debugger",
    )
    group.addoption("--time-limit", type=seconds, default=300.0, metavar="S", help="seconds for one isolated cell")
    group.addoption("--memory-limit", type=whole(1), default=8, metavar="GB", help="memory for one isolated cell")
    group.addoption(
        "--sanitize",
        action="store_true",
        help="AddressSanitizer and UBSan: one more cell for a candidate; for backends, see `nox -s sanitize`",
    )


def _required(config: pytest.Config) -> str:
    """The last level that is required."""
    return str(config.getoption("level") or _selection(config).usual_level)


def _is_judging(config: pytest.Config) -> bool:
    """Whether the command line names tests that judge whatever is selected."""
    return any(Path(text.partition("::")[0]).name in _JUDGING for text in config.args)


def _selection(config: pytest.Config) -> Selection:
    """What the command line selects. Raises pytest.UsageError, for a reference without a contract too."""
    if _SELECTED not in config.stash:  # to read it looks at files
        try:
            read = selection_options.read(config.option, sanitize=bool(config.getoption("sanitize")))
            config.stash[_SELECTED] = replace(read, share=_share(config))
        except HarnessError as error:
            raise pytest.UsageError(str(error)) from None
    return replace(config.stash[_SELECTED], examples=config.stash.get(_EXAMPLES, Examples()))


def _share(config: pytest.Config) -> Shard:
    """Which calls of a cell this run makes. Raises UsageError for `--divide` without shards."""
    part = Shard.parse(config.getoption("shard"))
    if not config.getoption("divide"):
        return UNDIVIDED
    if part.count == 1:
        raise UsageError(
            "--divide was given without --shard K/N, which says how many parts there are: add it, or let "
            "`python -m harness divide` give both"
        )
    return part


def _is_isolated(config: pytest.Config) -> bool:
    """Whether cells are judged in other processes: code from outside may end its process, or the CUDA context of it."""
    choice = config.getoption("isolate")
    if choice != "auto":
        return bool(choice == "on")
    if config.getoption("candidate"):
        return True
    paths = tuple(Path(path) for path in config.getoption("backend_path") or ())
    with suppress(HarnessError):  # it is told where the selection is read
        return bool(of_packages(config.getoption("backend") or (), paths))
    return False


def _is_sandboxed(config: pytest.Config) -> bool:
    """Whether candidates run where they cannot change a file of the suite."""
    return _is_isolated(config) and sandbox.is_used(config.getoption("sandbox"))


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "xdist_group: which worker a cell goes to, where pytest-xdist is not loaded")
    for line in _HARMLESS:
        config.addinivalue_line("filterwarnings", f"ignore:{line}")
    if _is_judging(config) and hasattr(config.option, "loadscopereorder"):
        config.option.loadscopereorder = False  # pytest-xdist would begin with the largest group
    is_worker = hasattr(config, "workerinput")
    if is_worker:
        end_with_parent()
    isolated = _is_isolated(config)
    if isolated and not is_worker and config.getoption("candidate") and not config.getoption("collectonly"):
        suite_process.keep()  # before this process computes anything or starts a thread
    judging.bind(drawing=not isolated)
    given = config.getoption("examples_seed")
    told = getattr(config, "workerinput", {}).get(_SEED)
    seed = drawn_seed.chosen(given, config.getoption("candidate") or ()) if told is None else told
    config.stash[_EXAMPLES] = Examples(config.getoption("examples"), seed)
    selection = _selection(config)
    _read_properties(config)
    # Checked here, a wrong option ends the run with one sentence; later there would be one for each worker and file.
    if not selection.is_default and not is_worker:
        _slots(selection)
    config.stash[_DONE] = frozenset(getattr(config, "workerinput", {}).get(_DONE_NAME, ()))
    files = suite_files.digests() if selection.candidates and not is_worker and not _is_sandboxed(config) else None
    if isolated:
        isolation = config.stash[_ISOLATION] = _processes(config, config.getoption("time_limit"))
        if is_worker:
            config.stash[_BROKEN] = config.workerinput[_BROKEN_NAME]  # type: ignore[attr-defined]
        elif not config.getoption("collectonly"):
            config.stash[_BROKEN] = _not_importable(isolation, selection)
    recorder = None if is_worker or config.getoption("collectonly") else _record(config, selection, files)
    config.pluginmanager.register(Hangs(None if recorder is None else recorder.hangs), "conformance-hangs")


def _processes(config: pytest.Config, seconds: float) -> Isolation:
    """The processes that judge in place of this one, each cell within that time; they end with the run."""
    limits = Limits(seconds, config.getoption("memory_limit") * 2**30)
    made = Isolation(_selection(config), limits, choice=config.getoption("sandbox"))
    config.add_cleanup(made.stop)
    return made


def _read_properties(config: pytest.Config) -> None:
    """Check the names of properties, and that no file is given where only options are."""
    try:
        asked_properties.require_known(config.getoption("property"), _PROPERTIES)
        if config.getoption("quick") and config.getoption("property"):
            raise UsageError("--quick was given with --property, but chooses the properties itself: leave one away")
        if config.inipath is not None and config.inipath.is_relative_to(SUITE):
            asked_properties.refuse_files(config.args, discovery.operators())
    except HarnessError as error:
        raise pytest.UsageError(str(error)) from None
    config.option.keyword = asked_properties.by_tests(config.option.keyword, _PROPERTIES)


def _not_importable(isolation: Isolation, selection: Selection) -> dict[str, str]:
    """Why each candidate that cannot be imported cannot, by its text."""
    found: dict[str, str] = {}
    seen: set[str] = set()
    for slot in _slots(selection):
        if isinstance(slot.source, Candidate) and slot.source.text not in seen:
            seen.add(slot.source.text)
            try:
                why = isolation.imports(slot)
            except Unavailable:
                continue  # no such device: its cells say so
            except HarnessError as error:
                isolation.stop()
                raise pytest.UsageError(str(error)) from None
            if why:
                found[slot.source.text] = why
    return found


def _record(config: pytest.Config, selection: Selection, files: dict[str, str] | None) -> Recorder:
    """Record the run. If the user named a report file, an error in it is reported now."""
    recorder = Recorder(config, lambda: _begun(config, selection), _cells_of, _is_judging(config), files)
    config.pluginmanager.register(recorder, "conformance-recorder")
    named = config.getoption("report") or config.getoption("resume")
    if named or (_is_judging(config) and not selection.is_default):
        config.stash[_DONE] = recorder.record.done
    return recorder


def _begun(config: pytest.Config, selection: Selection) -> tuple[Record, list[Slot]]:
    found = _slots(selection)
    earlier = config.getoption("resume")
    path = Path(config.getoption("report") or earlier or "reports/conformance.json")
    try:
        plan = plan_of(config, selection, found)
        record = Record.begin(path, plan, Path(earlier) if earlier else None, _required(config))
        config.add_cleanup(record.close)
    except HarnessError as error:
        raise pytest.UsageError(str(error)) from None
    if selection.candidates:
        isolated = _ISOLATION in config.stash
        record.sandbox = sandbox.described(config.getoption("sandbox")) if isolated else "none: --isolate=off"
        record.candidates = candidate_files.described(
            slot.source for slot in found if isinstance(slot.source, Candidate)
        )
    if config.getoption("quick"):
        asked = [found for found in _PROPERTIES.values() if any(slot.is_asked(found) for slot in _slots(selection))]
        record.left_out = tuple(found.name for found in asked if found.name not in quick.quick().properties)
    record.known = _cells_of_broken(config.stash.get(_BROKEN, {}), found)
    return record, found


def _cells_of_broken(broken: dict[str, str], found: list[Slot]) -> tuple[Cell, ...]:
    """One cell for each candidate that cannot be imported; nothing else of it is judged."""
    first = {slot.source.text: slot for slot in reversed(found) if isinstance(slot.source, Candidate)}
    return tuple(slot.cell(IMPORTS.name, FAIL, broken[text]) for text, slot in first.items() if text in broken)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the tests of other shards and those that an earlier run has judged; put the others in order.

    Implementations with processes of their own take turns: the cells of one are judged together.
    """
    items[:] = [item for item in items if not _is_empty(item)]
    part, done = Shard.parse(config.getoption("shard")), config.stash[_DONE]
    ours = [item for item in items if _is_divided(item) or part.holds(item.name)]
    config.stash[ELSEWHERE] = len(items) - len(ours)
    if hasattr(config, "workeroutput"):
        config.workeroutput[ELSEWHERE_NAME] = config.stash[ELSEWHERE]
    kept = [item for item in ours if item.name not in done]
    if len(kept) < len(items):
        config.hook.pytest_deselected(items=[item for item in items if item not in set(kept)])
        items[:] = kept
    items.sort(key=_place)
    if _ISOLATION in config.stash:
        items.sort(key=_implementation(items))


def _implementation(items: list[pytest.Item]) -> Callable[[pytest.Item], int]:
    """The turn of an item's implementation. To turn to another starts processes that import torch, which takes seconds.

    What takes most of a GPU's memory stays first.
    """
    turns: dict[tuple[str, str], int] = {}

    def turn(item: pytest.Item) -> int:
        slot = _slot_of(item)
        return turns.setdefault((slot.backend, slot.device), len(turns)) if isinstance(slot, Slot) else len(items)

    return lambda item: -1 if _place(item) < 0 else turn(item)


def _place(item: pytest.Item) -> int:
    """The decisive properties first, then level by level; tests that judge nothing come last.

    Before them all, if there are several workers: what takes most of a GPU's memory, while the others hold little.
    After the decisive ones, if there are many workers: the dearest, one by one.
    """
    if _WORKER in os.environ and any(mark.args == (_LARGE,) for mark in item.iter_markers("xdist_group")):
        return -1
    property, dear = _property_of(item), len(_DECISIVE)
    if property is None:
        return dear + len(_DEAREST) + len(LEVELS)
    if property.name in _DECISIVE:
        return _DECISIVE.index(property.name)
    groups = [str(mark.args[0]) for mark in item.iter_markers("xdist_group")]
    if property.name in _DEAREST and any(group.endswith(f"-{property.name}") for group in groups):
        return dear + _DEAREST.index(property.name)
    return dear + len(_DEAREST) + LEVELS.index(property.level)


def _slot_of(item: pytest.Item) -> object:
    """The parameter `slot` of a test: a Slot, or something else where the test judges nothing."""
    return getattr(getattr(item, "callspec", None), "params", {}).get("slot")


def _property_of(item: pytest.Item) -> Property | None:
    """The property that a test judges."""
    return _PROPERTIES.get(names.property_of(names.parts(item.name)[0]))


def _is_divided(item: pytest.Item) -> bool:
    """Whether each shard makes a part of the calls of this cell."""
    slot = _slot_of(item)
    property = _property_of(item)
    return isinstance(slot, Slot) and slot.share.count > 1 and property is not None and property.divisible


def _is_empty(item: pytest.Item) -> bool:
    """Whether this is what pytest makes of a test without parameters: a property that no selected place is asked."""
    parameters = getattr(getattr(item, "callspec", None), "params", {})
    return "slot" in parameters and not isinstance(parameters["slot"], Slot)


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> None:
    """Let the processes beside the judge begin at once: no worker and no limit of a test waits for them."""
    config = session.config
    alone = _WORKER not in os.environ and not getattr(config.option, "numprocesses", None)
    if _ISOLATION not in config.stash or not alone or config.getoption("timeout", None) is not None:
        return
    asked = []
    for item in session.items:
        slot = _slot_of(item)
        property = _property_of(item)
        if isinstance(slot, Slot) and property is not None:
            asked.append((slot, property))
    if config.getoption("collectonly"):
        return
    store = _store(config)
    isolation, cells = config.stash[_ISOLATION], [(slot, property.name) for slot, property in asked]
    divided = isolation.divide(cells, _DECISIVE, store)
    end = None if store is None or divided else foreseeing.begin(asked, store)
    if end is not None:
        config.add_cleanup(end)
    isolation.begin(cells)


@pytest.hookimpl(trylast=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """Install the progress bar: from here on the terminal reporter exists."""
    selection = _selection(session.config)
    _announce(session.config, selection)
    progress.install(session.config, lambda nodeid: nodeid.endswith(_ids(selection)), _cells_of)


def _announce(config: pytest.Config, selection: Selection) -> None:
    """Say what is left out because a package is missing, and what a first run compiles: that takes minutes."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if (
        reporter is None
        or hasattr(config, "workerinput")
        or config.getoption("collectonly")
        or _ISOLATION in config.stash
    ):
        return
    if not _is_judging(config):
        return
    lacking = ", ".join(f"{name} (pip install {what})" for name, what in not_installed(selection).items())
    if lacking:
        reporter.write_line(f"not judged, since a package is not installed: {lacking}")
    missing = to_build(_slots(selection))
    if missing:
        count = f"{len(missing)} librar{'ies are' if len(missing) > 1 else 'y is'}"
        reporter.write_line(f"{count} not built yet, which takes up to a minute each, once: {', '.join(missing)}")


def selected(config: pytest.Config) -> list[Slot]:
    """Every slot that the command line selects. Raises pytest.UsageError for an unknown name."""
    return _slots(_selection(config))


def _slots(selection: Selection) -> list[Slot]:
    try:
        return slots(selection)
    except HarnessError as error:
        raise pytest.UsageError(str(error)) from None


@cache
def _ids(selection: Selection) -> tuple[str, ...]:
    """The parameter ids of the tests: the ends of their names."""
    return tuple(f"[{slot.id}]" for slot in _slots(selection))


def _cells_of(report: pytest.TestReport) -> list[Cell]:
    """The cells that a test recorded, in this process or in a worker."""
    return [Cell(**json.loads(str(value))) for key, value in report.user_properties if key == _CELL]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "slot" not in metafunc.fixturenames:
        return
    property = _PROPERTIES.get(names.property_of(metafunc.function.__name__))
    found = _asked_of(metafunc.config, property)
    groups = _groups(found, property)
    limit = _without_pytests_limit(metafunc.config)
    parameters = [
        pytest.param(slot, id=slot.id, marks=[pytest.mark.xdist_group(group), *limit])
        for slot, group in zip(found, groups, strict=True)
    ]
    metafunc.parametrize("slot", parameters)


def _without_pytests_limit(config: pytest.Config) -> list[pytest.MarkDecorator]:
    """`--time-limit` is the limit of an isolated cell: pytest's usual one, in its ini file, must not end it earlier."""
    is_asked_for = config.getoption("timeout", None) is not None or not config.pluginmanager.hasplugin("timeout")
    return [] if _ISOLATION not in config.stash or is_asked_for else [pytest.mark.timeout(0)]


def _asked_of(config: pytest.Config, property: Property | None) -> list[Slot]:
    """The slots of one property: one for each implementation if it is judged once, and none of what does not import."""
    broken, chosen = config.stash.get(_BROKEN, {}), config.getoption("property")
    if property is not None and config.getoption("quick") and property.name not in quick.quick().properties:
        return []
    if property is not None and chosen and property.name not in chosen:
        return []
    found = [
        slot
        for slot in _in_order(_selection(config))
        if not (isinstance(slot.source, Candidate) and slot.source.text in broken)
        and (property is None or slot.is_asked(property))
    ]
    hurried = config.getoption("quick") and property is not None and property.name not in quick.quick().in_each_dtype
    if property is not None and (property.once or hurried):
        first: dict[tuple[str, str, str], Slot] = {}
        for slot in found:
            first.setdefault((slot.operator.name, slot.backend, slot.device), slot)
        return list(first.values())
    return found


@cache
def _in_order(selection: Selection) -> list[Slot]:
    """By dtype: the first groups are those of float32, which take longest, each for a different operator. Workers
    therefore do not begin by waiting for the same build. Slots without a build come first: they have a verdict at once.
    """
    return sorted(_slots(selection), key=lambda slot: (DTYPES.index(slot.dtype), slot.compiled() is not None))


def _groups(found: list[Slot], property: Property | None) -> list[str]:
    """The xdist group of each slot: an operator in a dtype, so that one worker computes its oracles once.

    The decisive properties are a group of their own, which share their oracles and are judged before the others. With
    more workers, a group is of a single dear property or a single level, of all backends, which share their oracles
    too. With many workers it is of a single backend: otherwise some workers would have no work.
    """
    if property is not None and property.large:
        return [_LARGE] * len(found)
    decisive = property is not None and property.name in _DECISIVE
    first = "first-" if decisive else ""
    groups = [f"{first}{slot.operator.name}-{slot.dtype}" for slot in found]
    wanted = _EACH * workers.at_work()
    if property is None or len(set(groups)) >= wanted:
        return groups
    part = "" if decisive else f"-{property.name if property.name in _DEAREST else property.level}"
    if len(set(groups)) * _PARTS >= wanted:
        return [f"{group}{part}" for group in groups]
    return [f"{group}-{slot.backend}{part}" for group, slot in zip(groups, found, strict=True)]


class Judge:
    """The value of the fixture `cell`: call it with the property."""

    def __init__(self, slot: Slot, request: pytest.FixtureRequest) -> None:
        self._slot, self._request = slot, request

    def __call__(self, property: Property) -> None:
        """Judge, record the cell, and fail or skip the test with the cell's reason.

        What fails above the required level is a fact about the candidate, and no failure of the run.
        """
        try:
            cell = self._judged(property)
        except pytest.fail.Exception as error:  # pytest-timeout ends a test so
            why = f"{property.name} did not finish in time: it hangs, or this machine is too slow for it: {error}"
            cell = replace(self._slot.cell(property.name, NO_EVIDENCE, why), figures={CUT_OFF: str(error)})
            if _ISOLATION in self._request.config.stash:
                self._request.config.stash[_ISOLATION].stop()  # its processes still work at this cell
        except Exception as error:
            why = f"the harness itself failed; this is not an error of the candidate: {one_line(error)}"
            self._record(self._slot.cell(property.name, NO_EVIDENCE, why))
            raise
        self._record(cell)
        if is_part(cell):
            pytest.skip(cell.reason)
        is_bad = cell.verdict in (FAIL, NO_EVIDENCE)
        if is_bad and not is_required(cell.level or property.level, _required(self._request.config)):
            what = "not supported" if cell.verdict == FAIL else "no evidence"
            pytest.skip(f"{what}, and not required: {cell.reason.splitlines()[0]}")
        if cell.verdict == FAIL:
            script = cell.figures.get("reproducer")
            pytest.fail(
                f"{cell.reason}\n\nThis script reproduces it:\n\n{script}" if script else cell.reason, pytrace=False
            )
        if cell.verdict == NO_EVIDENCE:
            pytest.fail(f"no evidence: {cell.reason}", pytrace=False)
        if cell.verdict in (NOT_RUN, DECLARED):
            pytest.skip(f"{cell.verdict}: {cell.reason}")

    def _record(self, cell: Cell) -> None:
        self._request.node.user_properties.append((_CELL, json.dumps(jsonable(asdict(cell)))))

    def _judged(self, property: Property) -> Cell:
        config = self._request.config
        isolation = config.stash.get(_ISOLATION, None) or config.stash.get(_LOST, None)
        with stored.used(_store(config)):
            return self._judged_here(property) if isolation is None else isolation.judge(self._slot, property.name)

    def _judged_here(self, property: Property) -> Cell:
        """The cell, judged in this process. If that costs it its CUDA device, other processes judge from then on."""
        began, cell = time.monotonic(), None
        try:
            cell = self._slot.judge(property)
        except Exception:
            why = lost_device()
            if not why:
                raise
        else:
            why = lost_device()
            if not why:
                return cell
        config = self._request.config
        config.stash[_LOST] = _processes(config, _LONGEST)
        if cell is not None and cell.verdict in (FAIL, DECLARED):
            return cell
        return self._slot.ended(property.name, lost(why), time.monotonic() - began)


def _store(config: pytest.Config) -> Path | None:
    """The folder of expected results; None if a candidate runs where it can write to it."""
    if not config.getoption("candidate"):
        return expected_root()
    return expected_root() if _ISOLATION in config.stash and sandbox.is_used(config.getoption("sandbox")) else None


@pytest.fixture
def cell(slot: Slot, request: pytest.FixtureRequest) -> Judge:
    """The judge of one (operator, backend, device, dtype)."""
    return Judge(slot, request)


@pytest.fixture(autouse=True)
def _one_thread_a_worker() -> Iterator[None]:
    """Give each of several workers one thread: small tensors gain nothing from more."""
    with one_thread():
        yield
    if torch.cuda.is_available() and torch.cuda.memory_reserved() > _KEPT and not lost_device():
        torch.cuda.empty_cache()  # frees gigabytes for other workers on this GPU


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int | None:
    """The number of workers for `-n auto`: as cores and memory allow, unless pytest-xdist's variable sets it."""
    if "PYTEST_XDIST_AUTO_NUM_WORKERS" in os.environ:
        return None
    devices = _selection(config).devices
    return workers.of_this_machine(on_gpus=not devices or CUDA in devices)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Give every worker the same seed, so that backends share oracles, and the same list of tests to leave out."""
    node.workerinput[_SEED] = node.config.stash[_EXAMPLES].seed
    node.workerinput[_DONE_NAME] = sorted(node.config.stash[_DONE])
    node.workerinput[_BROKEN_NAME] = node.config.stash.get(_BROKEN, {})
