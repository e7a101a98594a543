"""The state of a process that a call must not change: how to read each piece of it, and how to restore it."""

from __future__ import annotations

import ctypes
import gc
import os
import random
import re
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch

from backends.base import CUDA
from harness.judging import floating_point, openmp, tampering

#: The end of the path that setuptools adds to sys.path.
_SETUPTOOLS = "setuptools/_vendor"
_MKL_THREADS = re.compile(r"mkl_get_max_threads\(\) : (\d+)")


class Probe:
    """One piece of global state: how to read it, how to restore it, and an unusual value for it, if there is one.

    What may have changed where `read` does not see it is restored `always`. `elsewhere`: other threads must answer,
    which takes as long as a processor needs to become free for them.
    """

    def __init__(
        self,
        name: str,
        read: Callable[[], Any],
        write: Callable[[Any], object],
        unusual: Callable[[Any], Any] | None = None,
        always: bool = False,
        elsewhere: bool = False,
    ) -> None:
        self.name, self.read, self.write, self.unusual = name, read, write, unusual
        self.always, self.elsewhere = always, elsewhere


def _flushes_denormals() -> bool:
    """Whether half of the smallest normal number is 0, in Python's arithmetic or in torch's."""
    smallest = torch.full((8,), torch.finfo(torch.float32).tiny, device="cpu", dtype=torch.float32)
    return sys.float_info.min / len("ab") == 0.0 or not bool((smallest / 2).all())


def _modes(device: str, libraries: list[ctypes.CDLL]) -> list[Probe]:
    """The floating-point mode of every thread that a call may use.

    Those of other threads come first, so that they are restored when the calling thread and the number of threads are.
    """
    of = "floating-point mode of"
    found = [
        Probe(
            f"{of} torch's OpenMP threads",
            floating_point.of_openmp_threads,
            lambda _: floating_point.give_openmp_threads(libraries),
            always=True,
            elsewhere=True,
        ),
        Probe(f"{of} torch's threads for tasks", floating_point.of_interop_threads, lambda _: None, elsewhere=True),
    ]
    if not floating_point.is_known():
        return [*found, Probe("flushing of denormals", _flushes_denormals, torch.set_flush_denormal, lambda _: True)]
    if device == CUDA:
        found.append(
            Probe(
                f"{of} autograd's thread",
                partial(floating_point.of_autograds_thread, device),
                lambda was: floating_point.on_autograds_thread(device, partial(floating_point.write, was)),
                elsewhere=True,
            )
        )
    name = f"{of} the calling thread"
    return [*found, Probe(name, floating_point.read, floating_point.write, floating_point.Mode.flushing)]


def _default_device() -> str:
    return str(torch.get_default_device())


def _precisions() -> dict[str, str]:
    """How float32 products may be computed. An older setting raises when read if a newer one contradicts it."""
    backends = {
        "all": torch.backends,
        "cuda.matmul": torch.backends.cuda.matmul,
        "cudnn": torch.backends.cudnn,
        "mkldnn": torch.backends.mkldnn,
    }
    return {name: str(backend.fp32_precision) for name, backend in backends.items()}  # type: ignore[attr-defined]


def _write_precisions(values: dict[str, str]) -> None:
    torch.backends.fp32_precision = values["all"]  # type: ignore[attr-defined]
    torch.backends.cuda.matmul.fp32_precision = values["cuda.matmul"]
    torch.backends.cudnn.fp32_precision = values["cudnn"]
    torch.backends.mkldnn.fp32_precision = values["mkldnn"]


def _matmul_precision() -> str:
    try:
        return torch.get_float32_matmul_precision()
    except RuntimeError:
        return "contradicted by a newer setting"


def _write_matmul_precision(value: str) -> None:
    if value in ("highest", "high", "medium"):
        torch.set_float32_matmul_precision(value)


def _write_threads(count: int) -> None:
    """Start them too, with the floating-point mode that the calling thread has now."""
    torch.set_num_threads(count)
    floating_point.of_openmp_threads()


#: What Inductor tells Triton by: torch._inductor.runtime, triton_heuristics.py and compile_tasks.py.
_SET_BY_INDUCTOR = frozenset({"TRITON_CACHE_DIR", "TRITON_LIBDEVICE_PATH", "TRITON_PTXAS_PATH"})


def _mkl_threads() -> int:
    """How many threads MKL uses, which may be another number than torch says; 0 in a build of torch without MKL."""
    found = _MKL_THREADS.search(torch.__config__.parallel_info())
    return int(found[1]) if found else 0


def _write_filters(filters: list[Any]) -> None:
    warnings.filters[:] = filters  # type: ignore[index]
    warnings._filters_mutated()  # type: ignore[attr-defined]


def _environment() -> dict[str, str]:
    """All but those of torch.compile, which torch itself sets when it first traces or compiles for a GPU."""
    return {
        name: value
        for name, value in os.environ.items()
        if "TORCHINDUCTOR_" not in name and name not in _SET_BY_INDUCTOR
    }


def _write_environment(values: dict[str, str]) -> None:
    for name in set(_environment()) - set(values):
        del os.environ[name]
    os.environ.update(values)


def _import_path() -> list[str]:
    """All but the folder that setuptools adds for itself when torch.utils.cpp_extension imports it: no candidate's."""
    return [path for path in sys.path if not path.replace(os.sep, "/").endswith(_SETUPTOOLS)]


def _write_import_path(was: list[str]) -> None:
    sys.path[:] = [*was, *(path for path in sys.path if path not in was and path not in _import_path())]


def _write_deterministic(values: tuple[bool, bool]) -> None:
    torch.use_deterministic_algorithms(values[0], warn_only=values[1])


def _namespaces() -> dict[str, Any]:
    return {
        "torch": torch,
        "torch.Tensor": torch.Tensor,
        "torch.autograd": torch.autograd,
        "torch.cuda": torch.cuda,
        "torch.nn.functional": torch.nn.functional,
        "torch.testing": torch.testing,
        "time": time,
        "warnings": warnings,
    }


def _functions() -> dict[str, Any]:
    """Functions that tests and timers are built on; nothing should replace them."""
    return {
        f"{place}.{name}": value
        for place, namespace in _namespaces().items()
        for name, value in vars(namespace).items()
        if callable(value)
    }


def _write_functions(functions: dict[str, Any]) -> None:
    now = _functions()
    for full_name, value in functions.items():
        if now.get(full_name) is not value:
            place, _, name = full_name.rpartition(".")
            setattr(_namespaces()[place], name, value)


def probes(device: str) -> list[Probe]:
    libraries = openmp.libraries()
    found = [
        *_modes(device, list(libraries.values())),
        Probe("default dtype", torch.get_default_dtype, torch.set_default_dtype, lambda _: torch.float64),
        Probe("default device", _default_device, lambda was: torch.set_default_device(None if was == "cpu" else was)),
        Probe(
            "state of torch's generator",
            lambda: bytes(torch.get_rng_state().numpy().data),
            lambda was: torch.set_rng_state(torch.frombuffer(bytearray(was), dtype=torch.uint8)),
        ),
        Probe("state of Python's generator", random.getstate, random.setstate),
        Probe("grad mode", torch.is_grad_enabled, torch.set_grad_enabled),
        Probe("inference mode", torch.is_inference_mode_enabled, lambda _: None),
        Probe("number of threads", torch.get_num_threads, _write_threads, lambda was: was + 1),
        # Behind the one that sets it: after OpenMP's settings are restored, torch's number is right, and MKL's is not.
        Probe("number of MKL's threads", _mkl_threads, torch.set_num_threads),
        *(
            Probe(f"OpenMP settings of {name}", partial(openmp.settings, library), partial(openmp.set_all, library))
            for name, library in libraries.items()
        ),
        Probe("float32 precisions", _precisions, _write_precisions),
        Probe("float32 matmul precision", _matmul_precision, _write_matmul_precision, lambda _: "high"),
        Probe(
            "deterministic algorithms",
            lambda: (
                torch.are_deterministic_algorithms_enabled(),
                torch.is_deterministic_algorithms_warn_only_enabled(),
            ),
            _write_deterministic,
        ),
        Probe("anomaly detection", torch.is_anomaly_enabled, torch.autograd.set_detect_anomaly),
        Probe("warnings filters", lambda: list(warnings.filters), _write_filters),
        Probe("environment variables", _environment, _write_environment),
        Probe("working directory", os.getcwd, os.chdir),
        Probe("import path", _import_path, _write_import_path),
        Probe("garbage collection", gc.isenabled, lambda was: gc.enable() if was else gc.disable()),
    ]
    found += [
        Probe(
            f"autocast on {kind}",
            partial(torch.is_autocast_enabled, kind),
            partial(torch.set_autocast_enabled, kind),
        )
        for kind in ("cpu", "cuda")
    ]
    found += [
        Probe(
            f"cudnn.{flag}", partial(getattr, torch.backends.cudnn, flag), partial(setattr, torch.backends.cudnn, flag)
        )
        for flag in ("enabled", "benchmark", "deterministic")
    ]
    if device == CUDA:
        found += [
            Probe("current CUDA device", torch.cuda.current_device, torch.cuda.set_device),
            Probe("current CUDA stream", torch.cuda.current_stream, torch.cuda.set_stream),
            Probe(
                "state of the CUDA generators",
                lambda: [bytes(state.numpy().data) for state in torch.cuda.get_rng_state_all()],
                lambda was: torch.cuda.set_rng_state_all(
                    [torch.frombuffer(bytearray(state), dtype=torch.uint8) for state in was]
                ),
            ),
        ]
    # Last, so that the real functions are used to restore the others.
    found.append(Probe("functions", _functions, _write_functions, always=True))
    return found


class Watch:
    """All probes, with their first readings."""

    def __init__(self, device: str) -> None:
        self._probes = probes(device)
        self._before = {probe.name: probe.read() for probe in self._probes}

    def unusual(self) -> None:
        """Set every piece of state that has an unusual value to it, and watch for changes from there.

        The last first, as in `put_back`: threads that are started have the usual floating-point mode.
        """
        for probe in reversed(self._probes):
            if probe.unusual is not None:
                probe.write(probe.unusual(self._before[probe.name]))
        self._before = {probe.name: probe.read() for probe in self._probes}

    def changes(self, elsewhere: bool = True) -> Iterator[tuple[str, str, str]]:
        """(name, what it is now, what it was) for each changed piece of state; `elsewhere`: on other threads too."""
        for probe in self._probes:
            if probe.elsewhere and not elsewhere:
                continue
            now, was = probe.read(), self._before[probe.name]
            if probe.name == "functions":
                for name, value in was.items():
                    there = now.get(name, value)
                    if there is not value and not tampering.wrapped_by_torch(there, value):
                        yield name, "another function", "the one that it is by itself"
            elif now != was:
                yield probe.name, *_shortly(now, was)

    def put_back(self) -> None:
        """Restore everything, so that the effects of one candidate do not reach the next."""
        for probe in reversed(self._probes):
            now, was = probe.read(), self._before[probe.name]
            if probe.always or now != was:
                probe.write(was)


def _shortly(now: Any, was: Any) -> tuple[str, str]:
    """Both values in words; of long ones, only the difference."""
    if isinstance(now, dict) and isinstance(was, dict):
        keys = [key for key in {**was, **now} if now.get(key) != was.get(key)]
        return tuple(", ".join(f"{k}={v.get(k, 'unset')}" for k in keys) for v in (now, was))  # type: ignore[return-value]
    if isinstance(now, bytes | tuple) and len(now) > 8:
        return "another", "the same, bit for bit"
    if isinstance(now, list):
        added, lost = [x for x in now if x not in was], [x for x in was if x not in now]
        return f"{len(now)} entries" + f", new {added}" * bool(added), f"{len(was)} entries" + f", lost {lost}" * bool(
            lost
        )
    return str(now), str(was)


@contextmanager
def watched(device: str) -> Iterator[Watch]:
    watch = Watch(device)
    try:
        yield watch
    finally:
        watch.put_back()
