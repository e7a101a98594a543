"""The process that measures one tree. Run as a script, with that tree first on the path; it answers on a socket.

    python -P worker.py FD          requests and answers are lines of JSON

The measuring code comes from the folder next to this file, the measured code from the tree, so that base and head are
measured by the same code. From the tree it imports only modules that every commit has: `harness.discovery` and its
errors, and `spec.contract`. Nothing else of this project may be imported here.
"""

from __future__ import annotations

import ctypes
import importlib.util
import json
import os
import pkgutil
import socket
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import Tensor

MEASURING = Path(__file__).parents[1] / "measuring"


def _import_folder(folder: Path, name: str) -> ModuleType:
    """Import a package from its folder, regardless of `sys.path`."""
    found = importlib.util.spec_from_file_location(
        name, folder / "__init__.py", submodule_search_locations=[str(folder)]
    )
    if found is None or found.loader is None:
        raise ImportError(f"{folder} is not a package")
    module = importlib.util.module_from_spec(found)
    sys.modules[name] = module
    found.loader.exec_module(module)
    return module


_import_folder(MEASURING, "measuring_of_the_gate")
work = importlib.import_module("measuring_of_the_gate.work")
clocks = importlib.import_module("measuring_of_the_gate.clocks")
memory = importlib.import_module("measuring_of_the_gate.memory")
processors = importlib.import_module("measuring_of_the_gate.processors")

discovery = importlib.import_module("harness.discovery")
errors = importlib.import_module("harness.errors")
contract = importlib.import_module("spec.contract")

Benchmark = dict[str, Any]
#: An operator (None for all) of a backend, and the reason.
Broken = dict[str, Any]
#: Calls before instructions are counted.
_WARM_UP = 5


def hide_broken_backends() -> list[Broken]:
    """Let this tree find only the backends that can be imported; the others, which must not stop them."""
    broken: list[Broken] = []
    listed, lost = pkgutil.iter_modules, set()
    for info in listed([str(Path(str(discovery.__file__)).parents[1] / "backends")]):
        if info.ispkg and not info.name.startswith("_"):
            try:
                importlib.import_module(f"backends.{info.name}")
            except (Exception, SystemExit) as error:
                lost.add(info.name)
                reason = f"backends.{info.name} does not import: {type(error).__name__}: {error}"
                broken.append({"operator": None, "backend": info.name.replace("_", "-"), "reason": reason})
    if lost:
        # Every commit lists its backends by this function.
        pkgutil.iter_modules = lambda *args, **named: (i for i in listed(*args, **named) if i.name not in lost)
    return broken


def benchmarks(devices: list[str], dtypes: list[str]) -> dict[str, list[dict[str, Any]]]:
    """The `benchmarks` of this tree: the benchmark cases of each operator that a backend has; and what is `broken`."""
    found: list[Benchmark] = []
    broken: list[Broken] = []
    for operator_name, operator in discovery.operators().items():
        for backend_name, backend in discovery.all_backends().items():
            try:
                if backend.implementation(operator_name) is None:
                    continue
            except errors.HarnessError as error:
                broken.append({"operator": operator_name, "backend": backend_name, "reason": str(error)})
                continue
            places = [
                (device, dtype)
                for device in devices
                if device in backend.backend.devices
                for dtype in dtypes
                if getattr(torch, dtype) in backend.backend.dtypes
            ]
            for device, dtype in places:
                for case in operator.cases:
                    if "benchmark" in case.tags:
                        found.append(
                            {
                                "operator": operator_name,
                                "backend": backend_name,
                                "device": device,
                                "dtype": dtype,
                                "case": case.name,
                                "sizes": dict(case.sizes),
                            }
                        )
    return {"benchmarks": found, "broken": broken}


class Measured:
    """The benchmark that is measured at present: prepared once, timed many times."""

    def __init__(self, asked: Benchmark) -> None:
        device, dtype = asked["device"], getattr(torch, asked["dtype"])
        operator = discovery.operator(asked["operator"])
        function = operator.bound(discovery.load_function(asked["operator"], asked["backend"], device))
        sizes = dict(operator.case(asked["case"]).sizes)
        self.clock = clocks.clock(asked["clock"])
        with clocks.preparing(asked["clock"], device):
            first = _call(operator, sizes, dtype, device, 0)
            length = work.ring_length(sum(t.numel() * t.itemsize for part in first for t in part), device)
            ring = [first, *(_call(operator, sizes, dtype, device, seed) for seed in range(1, length))]
            self.work = work.prepare(function, ring, asked["phase"], device)


def _call(operator: Any, sizes: dict[str, int], dtype: torch.dtype, device: str, seed: int) -> tuple[Any, Any]:
    """(inputs, cotangents) of the first form of the operator, with ordinary values."""
    draw = contract.Draw(seed)
    inputs = tuple(value.to(dtype).to(device) for value in operator.ordinary(sizes, draw).values())
    cotangents: tuple[Tensor, ...] = tuple(
        draw.normal(arg.shape_for(sizes)).to(dtype).to(device) for arg in operator.outputs if _is_real(arg)
    )
    return inputs, cotangents


def _is_real(arg: Any) -> bool:
    """Whether an output has a cotangent. The tree that is measured may be an older one, whose outputs are all real."""
    dtype: torch.dtype | None = getattr(arg, "dtype", None)
    return dtype is None or dtype.is_floating_point


class Server:
    """Answers requests: a request names a method, and its other fields are the arguments."""

    def __init__(self) -> None:
        self._measured: Measured | None = None
        self._broken = hide_broken_backends()

    def hello(self, threads: int) -> dict[str, Any]:
        """Identify the tree, and pin the worker to the processors that all workers use."""
        torch.set_num_threads(threads)
        processors.pin(threads)
        return {"tree": str(Path(str(discovery.__file__)).parents[1]), "torch": torch.__version__, "pid": os.getpid()}

    def benchmarks(self, devices: list[str], dtypes: list[str]) -> dict[str, list[dict[str, Any]]]:
        """The benchmarks that can be timed, and the backends that cannot be imported."""
        found = benchmarks(devices, dtypes)
        return {**found, "broken": [*self._broken, *found["broken"]]}

    def prepare(self, benchmark: Benchmark) -> None:
        """Load and warm up the benchmark to be timed next."""
        self._measured = None
        self._measured = Measured(benchmark)
        self._measured.work.once()

    def calls(self, seconds: float, multiple: int) -> int:
        """How many calls take about that many seconds."""
        found: int = clocks.calls_for(seconds, self._now.clock, self._now.work, multiple)
        return found

    def time(self, calls: int) -> float:
        """Seconds of that many calls."""
        found: float = self._now.clock(self._now.work, calls)
        return found

    def memory(self) -> int:
        """Bytes at the peak of a call."""
        found: int = memory.peak_bytes(self._now.work)
        return found

    def instructions(self, calls: int, marks: str) -> None:
        """Make that many calls between the marks of callgrind."""
        library = ctypes.CDLL(marks)
        begin, end = library.begin_counting, library.end_counting  # looked up here, not between the marks
        for _ in range(_WARM_UP):
            self._now.work.once()
        begin()
        for _ in range(calls):
            self._now.work.once()
        end()

    def build(self, benchmark: Benchmark) -> float:
        """Seconds to load the implementation: with an empty cache, the time of its build."""
        start = time.perf_counter()
        discovery.load_function(benchmark["operator"], benchmark["backend"], benchmark["device"])
        return time.perf_counter() - start

    @property
    def _now(self) -> Measured:
        if self._measured is None:
            raise RuntimeError("nothing is prepared: call prepare first")
        return self._measured


def serve(stream: Any) -> None:
    """Answer until the other side closes: {"result": ...}, {"unavailable": why}, {"error": one line, "trace": ...}."""
    server = Server()
    for line in stream:
        request = json.loads(line)
        answer: dict[str, Any]
        try:
            method: Callable[..., Any] = getattr(server, request.pop("do"))
            answer = {"result": method(**request)}
        except (errors.Unavailable, clocks.NotCapturable) as error:
            answer = {"unavailable": str(error)}
        except Exception as error:  # any error of the tree's own code becomes the answer
            answer = {"error": f"{type(error).__name__}: {error}", "trace": traceback.format_exc()}
        stream.write(json.dumps(answer) + "\n")
        stream.flush()


if __name__ == "__main__":
    with socket.socket(fileno=int(sys.argv[1])) as connection, connection.makefile("rw", encoding="utf-8") as channel:
        serve(channel)
