"""Blocks of calls: in which order they wait and call, what a candidate can replace, and how long they are."""

from __future__ import annotations

import gc
import importlib.util
import itertools
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from torch import Tensor

from harness import discovery
from harness.bench import blocks, measurement
from harness.bench.blocks import BlockTimer, Ring, asking, copies_of
from harness.bench.foreign import asking_backend, asking_nobody
from harness.bench.measurement import Settings
from harness.executing import timing
from harness.executing.timing import Header, Tensors, Timing
from harness.judging.remote import RemoteError
from harness.measuring import clocks
from harness.measuring.work import Work
from spec.contract import BACKWARD, FORWARD, FORWARD_AND_BACKWARD, PHASES
from tools.study import timing as study

LLTM = discovery.operator("lltm")
TUTORIAL = LLTM.case("tutorial")
#: A GPU's clock would be read, and a GPU waited for, by these.
_REPLACED = (
    (torch.cuda, "synchronize Event Stream current_stream device"),
    (torch.cuda.Event, "record synchronize elapsed_time query"),
    (torch._C, "_cuda_synchronize _cuda_exchangeDevice _cuda_getDeviceCount _cuda_hasPrimaryContext"),
    (torch._C, "_set_grad_enabled DisableTorchFunction"),
    (torch, "no_grad enable_grad set_grad_enabled roll set_num_threads device int32"),
    (torch.autograd, "grad backward"),
    (torch.autograd.Variable, "_execution_engine"),
    (torch.utils._python_dispatch, "_disable_current_modes"),
    (Tensor, "to detach clone contiguous view roll copy_ unbind sum tolist requires_grad_ cpu numpy"),
    (gc, "isenabled enable disable"),
    (time, "perf_counter perf_counter_ns monotonic time sleep"),
)


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Short rings; a ring sets the number of threads."""
    threads = torch.get_num_threads()
    monkeypatch.setattr(blocks, "_LENGTH", 8)
    yield
    torch.set_num_threads(threads)


class Devices:
    """Three GPUs, of which the second has not been used: what is asked of torch's functions in C."""

    def __init__(self) -> None:
        self.current = 0
        self.log: list[str] = []

    def exchange(self, device: int) -> int:
        before, self.current = self.current, device
        return before

    def functions(self) -> dict[str, Callable[..., Any]]:
        """They by their names in `torch._C`."""
        return {
            "_cuda_getDeviceCount": lambda: 3,
            "_cuda_hasPrimaryContext": lambda device: device != 1,
            "_cuda_exchangeDevice": self.exchange,
            "_cuda_synchronize": lambda: self.log.append(f"wait {self.current}"),
        }


def _loaded(monkeypatch: pytest.MonkeyPatch, devices: Devices) -> ModuleType:
    """timing.py as a process imports it where torch has CUDA."""
    for name, function in devices.functions().items():
        monkeypatch.setattr(torch._C, name, function, raising=False)
    found = importlib.util.spec_from_file_location("timing_of_a_gpu", str(timing.__file__))
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def _ready(module: ModuleType, function: Callable[..., Any], phase: str) -> tuple[Ring, Callable[..., Any]]:
    """A ring, and requests to a process that takes its tensors for those of a GPU."""
    ring, held = Ring(LLTM, TUTORIAL, torch.float32, "cpu", 1), module.Timing()
    ring.give(lambda header, tensors: held.answer(function, header, tensors), phase)
    held._device = torch.device("cuda")
    return ring, lambda header, tensors: held.answer(function, header, tensors)


def test_all_devices_are_waited_for_before_and_after_the_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not between two calls, and no device that was never used; the current device stays."""
    devices = Devices()

    def function(*inputs: Tensor) -> Any:
        devices.log.append("call")
        return LLTM.forward(*inputs)

    ring, ask = _ready(_loaded(monkeypatch, devices), function, FORWARD)
    plan = ring.plan(3)
    ring.refresh(ask, plan, FORWARD)
    devices.log.clear()
    ring.block(ask, plan, FORWARD)
    wait = ["wait 0", "wait 2"]
    assert devices.log == [*wait, "call", "call", "call", *wait]
    assert devices.current == 0


def test_no_reply_leaves_work_on_a_device(monkeypatch: pytest.MonkeyPatch) -> None:
    devices = Devices()
    ring, ask = _ready(_loaded(monkeypatch, devices), LLTM.forward, BACKWARD)
    plan = ring.plan(2)
    steps: tuple[Callable[[], object], ...] = (
        lambda: ring.refresh(ask, plan, BACKWARD),
        lambda: ring.block(ask, plan, BACKWARD),
        lambda: ask({"do": "commit"}, {}),
        lambda: ask({"do": "reveal", "calls": [0]}, {}),
    )
    for step in steps:
        devices.log.clear()
        step()
        assert devices.log[-2:] == ["wait 0", "wait 2"]


def test_a_process_without_values_uses_its_device_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """So a block without calls waits for as many devices."""
    used: list[str] = []
    monkeypatch.setattr(torch, "zeros", lambda *_, device: used.append(device.type))
    held = _loaded(monkeypatch, Devices()).Timing()
    ring = Ring(LLTM, TUTORIAL, torch.float32, "cpu", 1)
    ring.device = "cuda"
    ring.give(lambda header, tensors: held.answer(None, header, tensors), FORWARD, with_values=False)
    assert used == ["cuda"]


@pytest.mark.parametrize("phase", PHASES)
def test_names_that_are_replaced_later_are_not_looked_up(phase: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A candidate can replace them in its process: no request to time it uses them."""
    devices = Devices()
    ring, ask = _ready(_loaded(monkeypatch, devices), LLTM.forward, phase)
    plan, used = ring.plan(3), list[str]()
    plan.late[:] = [0 for _ in ring.sent]
    late = plan.late[: ring.inputs] if phase == FORWARD else plan.late[ring.inputs if phase == BACKWARD else 0 :]
    orders = {FORWARD: plan.orders[: ring.inputs], BACKWARD: plan.orders[ring.inputs :]}.get(phase, plan.orders)
    graphs = plan.orders[: ring.inputs] if phase == BACKWARD else []
    requests = (
        ({"do": "refresh", "shifts": plan.shifts, "graphs": graphs}, {}),
        ({"do": "time", "copied": plan.copied, "late": late}, {"orders": torch.tensor(orders)}),
        ({"do": "commit"}, {}),
        ({"do": "reveal", "calls": [0]}, {}),
    )
    with monkeypatch.context() as patch:
        for owner, names in _REPLACED:
            for name in names.split():
                patch.setattr(owner, name, lambda *_, __name=name, **__: used.append(__name), raising=False)
        for header, tensors in requests:
            _, found = ask(header, tensors)
    assert used == []
    assert len(found) == {FORWARD: 2, BACKWARD: 5, FORWARD_AND_BACKWARD: 7}[phase]
    assert "wait 0" in devices.log


@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("late", [False, True])
def test_the_judge_knows_the_arguments_of_each_call(phase: str, late: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a ring that has its entries three times; of those that are written just before a call, too."""
    monkeypatch.setattr(blocks, "copies_of", lambda *_: 3)
    given: list[tuple[Tensor, ...]] = []

    def function(*inputs: Tensor) -> Any:
        given.append(tuple(tensor.detach().clone() for tensor in inputs))
        return LLTM.forward(*inputs)

    ring, ask = Ring(LLTM, TUTORIAL, torch.float32, "cpu", 1), asking(function)
    assert ring.length == 3 * 8
    ring.has_late = late
    ring.give(ask, phase)
    plan = ring.plan(20)
    ring.refresh(ask, plan, phase)
    ring.block(ask, plan, phase)
    _, found = ask({"do": "reveal", "calls": list(range(20))}, {})
    for number, inputs in enumerate(given):
        call = ring.call(plan, number, phase)
        assert all(map(torch.equal, inputs, call.inputs))
        leaves = tuple(tensor.clone().requires_grad_() for tensor in call.inputs)
        outputs = LLTM.forward(*leaves)
        gradients = torch.autograd.grad(outputs, leaves, call.cotangents)
        should = {FORWARD: outputs, BACKWARD: gradients}.get(phase, (*outputs, *gradients))
        assert all(torch.equal(found[f"{number} {k}"], y.detach()) for k, y in enumerate(should))


def test_what_a_call_gets_late_is_nowhere_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """A call that begins before its block has come so far computes from other values."""
    seen: list[list[list[Tensor]]] = []
    given: list[tuple[Tensor, ...]] = []
    held = Timing()

    def function(*inputs: Tensor) -> Any:
        if not seen:
            seen.append([[entry.clone() for entry in entries] for entries in held.entries])
        given.append(tuple(tensor.clone() for tensor in inputs))
        return LLTM.forward(*inputs)

    ring = Ring(LLTM, TUTORIAL, torch.float32, "cpu", 1)
    ring.has_late = True
    ring.give(lambda header, tensors: held.answer(function, header, tensors), FORWARD)
    plan = ring.plan(6)
    plan.copied[:] = [4, 1]
    ring.refresh(lambda header, tensors: held.answer(function, header, tensors), plan, FORWARD)
    ring.block(lambda header, tensors: held.answer(function, header, tensors), plan, FORWARD)
    for number, inputs in enumerate(given):
        before = [seen[0][place][order[number]] for place, order in enumerate(plan.orders[: ring.inputs])]
        assert all(map(torch.equal, inputs, before)) == (number != 4)
    header, _ = held.answer(function, {"do": "commit"}, {})
    assert header["digests"][6:] == [header["digests"][1], header["digests"][4]]


@pytest.mark.parametrize(
    ("sent", "kept", "memory", "processes", "copies"),
    [
        (256, 10**5, 0, 3, 1),
        (256, 10**5, 80 * 10**9, 3, 4),
        (14, 62 * 10**6, 80 * 10**9, 3, 9),
        (14, 62 * 10**6, 80 * 10**9, 30, 1),
        (1, 10**11, 80 * 10**9, 3, 1),
    ],
)
def test_a_ring_is_as_long_as_a_gpu_has_memory(sent: int, kept: int, memory: int, processes: int, copies: int) -> None:
    assert copies_of(sent, kept, memory, processes) == copies


class _Clock:
    """Time passes in requests alone: so much for each, and for each call."""

    def __init__(self, request: float, call: float) -> None:
        self.now, self.request, self.call = 0.0, request, call

    def perf_counter(self) -> float:
        return self.now

    def ask(self, header: Header, tensors: Tensors) -> tuple[Header, Tensors]:
        self.now += self.request
        if header["do"] == "time":
            self.now += self.call * tensors["orders"].shape[1]
        return {}, {}

    def empty(self, header: Header, tensors: Tensors) -> tuple[Header, Tensors]:
        self.now += self.request
        return {}, {}


@pytest.mark.parametrize(
    ("request_seconds", "call", "wanted", "calls", "number"),
    [
        (0.001, 0.1, 0.25, 3, 1),  # as long as is wanted
        (0.01, 0.3, 0.2, 4, 1),  # longer: a hundred requests take 1 s
        (0.001, 0.1, 2.0, 8, 3),  # the ring is too short: three blocks of all its entries
        (0.001, 0.1, 1000, 8, 8),
    ],
)
def test_a_block_is_long_beside_a_request(
    request_seconds: float, call: float, wanted: float, calls: int, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of what a request takes nothing is left in the seconds of a call."""
    clock = _Clock(request_seconds, call)
    monkeypatch.setattr(blocks, "time", clock)
    timer = BlockTimer(Ring(LLTM, TUTORIAL, torch.float32, "cpu", 1), FORWARD, clock.ask, clock.empty)
    timer.begin(wanted, 60)
    assert (timer.calls, timer.blocks) == (calls, number)
    before = clock.now
    assert timer.sample() == pytest.approx(call)
    assert clock.now - before == pytest.approx(number * (calls * call + 3 * request_seconds))


def test_a_block_that_another_program_holds_up_is_no_measure(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two of three calls take a hundred times as long: the others say how many calls there are in a block."""
    clock = _Clock(0.0001, 0.001)
    monkeypatch.setattr(blocks, "time", clock)
    made = itertools.count()

    def held_up(header: Header, tensors: Tensors) -> tuple[Header, Tensors]:
        if header["do"] == "time" and next(made) % 3:
            clock.now += 0.05
        return clock.ask(header, tensors)

    timer = BlockTimer(Ring(LLTM, TUTORIAL, torch.float32, "cpu", 1), FORWARD, held_up, clock.empty)
    timer.begin(0.006, 60)
    assert timer.calls == 8


def test_no_work_is_between_two_calls_of_a_throughput(monkeypatch: pytest.MonkeyPatch) -> None:
    log: list[str] = []
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: log.append("wait"))
    assert clocks.clock(clocks.THROUGHPUT)(Work([lambda: log.append("call")], "cuda"), 3) > 0
    assert log == ["wait", "call", "call", "call", "wait"]


@pytest.mark.parametrize("beside", [False, True])
def test_the_clocks_beside_a_candidate_on_a_gpu(beside: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """There the eager calls of everything are timed by their throughput, as a candidate's are."""
    timed: list[tuple[str, bool]] = []

    def prepared(_self: Any, here: Any, *_: Any) -> dict[str, Any]:
        timed.append((here.clock, False))
        return {}

    def timers(_self: Any, here: Any, *_: Any) -> dict[str, Any]:
        timed[-1] = (here.clock, True)
        return {}

    class NoRing:
        def __init__(self, *_: Any) -> None:
            self.pairs = list

    for name, fake in (("_prepared", prepared), ("_timers", timers)):
        monkeypatch.setattr(measurement._Bench, name, fake)
    monkeypatch.setattr(measurement._Bench, "_is_right", lambda *_: True)
    monkeypatch.setattr(measurement, "Ring", NoRing)
    monkeypatch.setattr(measurement, "_ring", lambda *_: [])
    monkeypatch.setattr(clocks, "capture_stream", lambda: None)
    monkeypatch.setattr(torch.cuda, "stream", lambda _: ExitStack())
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    bench = measurement._Bench(Settings(phases=(FORWARD,)), say=lambda _: None)
    here = measurement._Place(LLTM, "cuda", torch.float32, None)
    foreign: Any = {"mine": None} if beside else {}
    bench._case(here, TUTORIAL, [], [], foreign, {})
    assert [clock for clock, _ in timed] == ["throughput" if beside else "wall", "graph"]
    assert bench.missing == [] or {entry["clock"] for entry in bench.missing} == {"throughput", "graph"}


BACKEND = """from backends.base import Backend
BACKEND = Backend("a folder's", devices=("cpu",))
"""
FUNCTION = """from backends.base import PythonFunction
from spec.lltm import forward
IMPLEMENTATION = PythonFunction(lambda *inputs: tuple(2 * y for y in forward(*inputs)))
"""


@pytest.fixture
def given_folder(tmp_path: Path) -> Path:
    """A backend for `--backend-path`, whose results are twice as large."""
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "__init__.py").write_text(BACKEND)
    (folder / "lltm.py").write_text(FUNCTION)
    return folder


def test_a_backend_beside_a_candidate_runs_in_a_process_like_its_own(given_folder: Path) -> None:
    """Its calls are those that the judge has asked for. A process without a function makes none."""
    backends = discovery.all_backends((given_folder,))
    with ExitStack() as until:
        for name, factor in (("python-autograd", 1), ("mine", 2)):
            ring = Ring(LLTM, TUTORIAL, torch.float32, "cpu", 1)
            ask = asking_backend(backends[name], "lltm", "cpu", until)
            ring.give(ask, FORWARD)
            plan = ring.plan(2)
            ring.refresh(ask, plan, FORWARD)
            ring.block(ask, plan, FORWARD)
            _, found = ask({"do": "reveal", "calls": [1]}, {})
            new_h, _ = LLTM.forward(*ring.call(plan, 1, FORWARD).inputs)
            torch.testing.assert_close(found["1 0"], factor * new_h)
        with pytest.raises(RemoteError, match="has no 'mlp'"):
            asking_backend(backends["mine"], "mlp", "cpu", until)
        nobody = asking_nobody(until)
        ring.give(nobody, FORWARD, with_values=False)
        ring.block(nobody, plan, FORWARD)
        assert nobody({"do": "commit"}, {})[0]["digests"] == []


def test_a_gain_is_beside_the_same_function_without_the_attack() -> None:
    """In the record of a study, a gain is that of the samples of the same rounds."""
    where = {"device": "cuda", "case": "tutorial", "phase": FORWARD, "clock": "throughput"}
    times = {"python-autograd": 2.0, "plain": 1.0, "patches_events": 1.0, "honest": 2.0}
    rows = [{**where, "backend": name, "samples": [s, s], "seconds": {"median": s}} for name, s in times.items()]
    graph = {**where, "backend": "plain", "clock": "graph", "status": "not-timed", "reason": "it is none"}
    late = {**where, "backend": "put_off", "status": "suspect", "reason": "work went on after the reply"}
    found = study.gains({"rows": rows, "missing": [graph, late]}, ["plain", "patches_events", "honest", "put_off"])
    told = {entry["attack"]: entry.get("gain", {}).get("median", entry.get("reason")) for entry in found}
    assert told == {"plain": 2.0, "patches_events": 1.0, "honest": 1.0, "put_off": late["reason"]}
    assert [entry["status"] for entry in found] == ["timed", "timed", "timed", "suspect"]


def test_the_attacks_of_the_study_exist() -> None:
    assert all((study.FOLDER / f"timing_{name}.py").exists() for name in ("plain", *study.WITHOUT))
    assert set(study.STREAMS) <= set(study.WITHOUT)
