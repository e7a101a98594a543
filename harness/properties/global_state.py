"""A call leaves the process as it found it: no default, mode, generator, flag, filter or function is changed.

An operator that sets the default dtype, seeds the generator, turns TF32 on or flushes denormals changes every line that
runs after it, far from any place where it would be looked for. So all such state is read before and after a forward, a
backward, a forward without grad and a call that is refused (where whoever sets and resets forgets to). This is done
twice: from the usual state, and from an unusual one, for to reset a flag to what it mostly is, is to change it too.

What only the import or the first call of a process does is seen in a fresh process, in which the implementation is
loaded and called once in every form. That takes seconds, and does not depend on the dtype, so it is done for float32
alone, by the first form for all; the figure says where it could not be done, because the function cannot be found by
name.
"""

from __future__ import annotations

import gc
import importlib
import importlib.util
import json
import os
import random
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import torch

from backends.base import CUDA
from harness import fresh, tampering
from harness.errors import Failure, NoEvidence
from harness.judge import Property
from harness.scenario import Scenario
from harness.scenarios import smallest
from harness.subject import CANDIDATE_ERRORS, Subject
from harness.wrong_calls import wrong_calls
from spec.contract import Operator

#: Seconds for a fresh process: it loads the implementation, opens the device and calls once.
LIMIT = 300.0


class _Probe:
    """One piece of global state: how to read it, how to put it back, and an unusual value for it, if it has one."""

    def __init__(
        self,
        name: str,
        read: Callable[[], Any],
        write: Callable[[Any], object],
        unusual: Callable[[Any], Any] | None = None,
    ) -> None:
        self.name, self.read, self.write, self.unusual = name, read, write, unusual


def _flushes_denormals() -> bool:
    """Whether half of the smallest normal number is 0, in Python's arithmetic or in torch's."""
    smallest = torch.full((8,), torch.finfo(torch.float32).tiny, device="cpu", dtype=torch.float32)
    return sys.float_info.min / len("ab") == 0.0 or not bool((smallest / 2).all())


def _default_device() -> str:
    return str(torch.get_default_device())


def _precisions() -> dict[str, str]:
    """How float32 products may be computed. Reading one of the older settings raises where a newer one contradicts."""
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


def _write_filters(filters: list[Any]) -> None:
    warnings.filters[:] = filters  # type: ignore[index]
    warnings._filters_mutated()  # type: ignore[attr-defined]


def _environment() -> dict[str, str]:
    """But for where torch.compile keeps its cache, which torch itself puts there when it is first traced with."""
    return {name: value for name, value in os.environ.items() if name != "TORCHINDUCTOR_CACHE_DIR"}


def _write_environment(values: dict[str, str]) -> None:
    for name in set(_environment()) - set(values):
        del os.environ[name]
    os.environ.update(values)


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
    """The functions that tests and timers are made of: nobody replaces them."""
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


def _probes(device: str) -> list[_Probe]:
    found = [
        _Probe("default dtype", torch.get_default_dtype, torch.set_default_dtype, lambda _: torch.float64),
        _Probe("default device", _default_device, lambda was: torch.set_default_device(None if was == "cpu" else was)),
        _Probe(
            "state of torch's generator",
            lambda: bytes(torch.get_rng_state().numpy().data),
            lambda was: torch.set_rng_state(torch.frombuffer(bytearray(was), dtype=torch.uint8)),
        ),
        _Probe("state of Python's generator", random.getstate, random.setstate),
        _Probe("grad mode", torch.is_grad_enabled, torch.set_grad_enabled),
        _Probe("inference mode", torch.is_inference_mode_enabled, lambda _: None),
        _Probe("number of threads", torch.get_num_threads, torch.set_num_threads, lambda was: was + 1),
        _Probe("float32 precisions", _precisions, _write_precisions),
        _Probe("float32 matmul precision", _matmul_precision, _write_matmul_precision, lambda _: "high"),
        _Probe(
            "deterministic algorithms",
            lambda: (
                torch.are_deterministic_algorithms_enabled(),
                torch.is_deterministic_algorithms_warn_only_enabled(),
            ),
            _write_deterministic,
        ),
        _Probe("anomaly detection", torch.is_anomaly_enabled, torch.autograd.set_detect_anomaly),
        _Probe("flushing of denormals", _flushes_denormals, torch.set_flush_denormal, lambda _: True),
        _Probe("warnings filters", lambda: list(warnings.filters), _write_filters),
        _Probe("environment variables", _environment, _write_environment),
        _Probe("working directory", os.getcwd, os.chdir),
        _Probe("import path", lambda: list(sys.path), lambda was: sys.path.__setitem__(slice(None), was)),
        _Probe("garbage collection", gc.isenabled, lambda was: gc.enable() if was else gc.disable()),
    ]
    found += [
        _Probe(
            f"autocast on {kind}",
            partial(torch.is_autocast_enabled, kind),
            partial(torch.set_autocast_enabled, kind),
        )
        for kind in ("cpu", "cuda")
    ]
    found += [
        _Probe(
            f"cudnn.{flag}", partial(getattr, torch.backends.cudnn, flag), partial(setattr, torch.backends.cudnn, flag)
        )
        for flag in ("enabled", "benchmark", "deterministic")
    ]
    if device == CUDA:
        found += [
            _Probe("current CUDA device", torch.cuda.current_device, torch.cuda.set_device),
            _Probe("current CUDA stream", torch.cuda.current_stream, torch.cuda.set_stream),
            _Probe(
                "state of the CUDA generators",
                lambda: [bytes(state.numpy().data) for state in torch.cuda.get_rng_state_all()],
                lambda was: torch.cuda.set_rng_state_all(
                    [torch.frombuffer(bytearray(state), dtype=torch.uint8) for state in was]
                ),
            ),
        ]
    # Last, so that what is put back is put back by the real ones.
    found.append(_Probe("functions", _functions, _write_functions))
    return found


class _Watch:
    """All probes with what they said at first."""

    def __init__(self, device: str) -> None:
        self._probes = _probes(device)
        self._before = {probe.name: probe.read() for probe in self._probes}

    def unusual(self) -> None:
        """Set every piece of state that has an unusual value, and watch for that."""
        for probe in self._probes:
            if probe.unusual is not None:
                probe.write(probe.unusual(self._before[probe.name]))
        self._before = {probe.name: probe.read() for probe in self._probes}

    def changes(self) -> Iterator[tuple[str, str, str]]:
        """(name, what it is, what it was) of each piece of state that is no longer the same."""
        for probe in self._probes:
            now, was = probe.read(), self._before[probe.name]
            if probe.name == "functions":
                for name, value in was.items():
                    there = now.get(name, value)
                    if there is not value and not tampering.wrapped_by_torch(there, value):
                        yield name, "another function", "the one that it is by itself"
            elif now != was:
                yield probe.name, *_shortly(now, was)

    def put_back(self) -> None:
        """Everything as it was, so that one candidate's doings do not meet the next."""
        for probe in reversed(self._probes):
            now, was = probe.read(), self._before[probe.name]
            if probe.name == "functions" or now != was:
                probe.write(was)


def _shortly(now: Any, was: Any) -> tuple[str, str]:
    """Both values in words; of long ones, what differs."""
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
def _watched(device: str) -> Iterator[_Watch]:
    watch = _Watch(device)
    try:
        yield watch
    finally:
        watch.put_back()


def check(subject: Subject) -> dict[str, Any]:
    """Every phase, from the usual state and from an unusual one; then in a fresh process."""
    scenario = smallest(subject.operator)
    _warm_up(subject, scenario)
    phases = 0
    with _watched(subject.device) as watch:
        phases += _phases(subject, scenario, watch)
        with _watched(subject.device) as inner:
            inner.unusual()
            try:
                phases += _phases(subject, scenario, inner)
            finally:
                inner.put_back()
    return {"phases": phases, "probes": len(_probes(subject.device)), "fresh process": _fresh(subject)}


def _warm_up(subject: Subject, scenario: Scenario) -> None:
    """What torch itself does when it is first used is not the candidate's doing: use it, with the reference."""
    call = subject.realise(scenario)
    outputs = subject.operator.forward(*call.inputs)
    torch.autograd.grad(outputs, call.inputs, call.cotangents)


def _phases(subject: Subject, scenario: Scenario, watch: _Watch) -> int:
    where = f"[{scenario.describe(subject.operator)}]"

    def hold(phase: str) -> None:
        for name, now, was in watch.changes():
            raise Failure(f"{name} was {now} after {phase}, but should be left as it was, {was} {where}")

    call = subject.realise(scenario)
    outputs = subject.outputs(call, scenario)
    hold("forward")
    subject.gradients(call, outputs, scenario)
    hold("backward")
    with torch.no_grad():
        subject.outputs(call, scenario)
        if torch.is_grad_enabled():
            raise Failure(
                f"grad mode was True after forward under no_grad, but should be left as it was, False {where}"
            )
    hold("forward under no_grad")
    inputs = tuple(tensor.detach() for tensor in call.inputs)
    count = 3
    for wrong in wrong_calls(subject.operator, dict(scenario.sizes), inputs):
        if wrong.kind in ("shape", "dtype"):
            try:
                wrong.make(subject)
            except CANDIDATE_ERRORS:
                hold(f"a refused call with {wrong.what}")
                count += 1
    return count


def _fresh(subject: Subject) -> str:
    """Load and call the implementation in a process of its own; what it changed there is a Failure."""
    if subject.dtype != torch.float32:
        return "asked in float32"
    if "asan" in os.environ.get("LD_PRELOAD", ""):
        return "not asked: under a sanitizer it would be another build"
    address = _address(subject.raw or subject.function)
    if not address and subject.backend not in _backends():
        return "not asked: the function cannot be found by name"
    about = {
        "operator": subject.operator.name,
        "backend": subject.backend,
        "device": subject.device,
        "contract": getattr(sys.modules.get(subject.operator.forward.__module__), "__file__", None),
        **address,
    }
    if (json.dumps(about), subject.operator.form) in _answered:
        return "asked with the first form"
    forms = [form.form for form in subject.operator.every_form()]
    answer = json.loads(_asked(json.dumps({**about, "forms": forms})))
    if answer["changes"]:
        name, phase, now, was, where = answer["changes"][0]
        raise Failure(
            f"{name} was {now} after {phase} in a fresh process, but should be left as it was, {was} [{where}]"
        )
    _answered.update((json.dumps(about), form) for form in forms[1:])
    return str(answer["done"])


#: What was asked, and the forms that were asked beside the first.
_answered: set[tuple[str, str]] = set()


@lru_cache(maxsize=1)
def _backends() -> frozenset[str]:
    from harness import discovery  # here: it imports all properties

    return frozenset(discovery.all_backends())


def _address(function: Callable[..., Any]) -> dict[str, str]:
    """Module, file and attribute under which a Python function, or an instance by its class, can be found again."""
    for name in (getattr(function, "__module__", None), type(function).__module__):
        module = sys.modules.get(name or "")
        file = getattr(module, "__file__", None)
        if module is None or file is None or module.__name__.partition(".")[0] == "torch":
            continue  # an operator that torch holds is found by its backend
        for attribute, value in vars(module).items():
            if value is function or value is type(function):
                return {"module": module.__name__, "file": file, "attribute": attribute}
    return {}


@lru_cache(maxsize=64)
def _asked(question: str) -> str:
    try:
        return fresh.asked(__name__, answer.__name__, question, LIMIT)
    except fresh.TooLate as error:
        raise Failure(
            f"import and first call took more than {LIMIT:g} s in a fresh process, but should return"
        ) from error
    except fresh.NoAnswer as error:
        raise NoEvidence(f"the fresh process in which import and first call are watched ended with: {error}") from error


def answer(asked: str) -> str:
    """In the fresh process: load, call, and tell what changed as JSON."""
    from harness import build, discovery  # here: discovery imports all properties

    question = json.loads(asked)
    device, contracts = question["device"], discovery.operators()
    if question["operator"] not in contracts:  # one that was given by its path
        contracts = discovery.operators((Path(question["contract"]),))
    operator = contracts[question["operator"]]
    forms = [operator.in_form(name) for name in question["forms"]]
    idle = Subject(operator, question["backend"], device, torch.float32, operator.forward)
    for form in forms:
        _warm_up(replace(idle, operator=form, function=form.forward), smallest(form))
    changes: list[list[str]] = []
    watch = _Watch(device)

    def note(phase: str, form: Operator) -> None:
        where = smallest(form).describe(form)
        changes.extend([name, phase, now, was, where] for name, now, was in watch.changes())

    function: Callable[..., Any] | None = None
    if "attribute" in question:
        name = question["module"]
        known = importlib.util.find_spec(name.partition(".")[0]) is not None
        module = importlib.import_module(name) if known else discovery.import_file(Path(question["file"]), "fresh")
        found = getattr(module, question["attribute"])
        note("its import", forms[0])
        function = found() if isinstance(found, type) else found
    elif question["backend"] in (backends := discovery.all_backends()):
        implementation = backends[question["backend"]].implementation(operator.name)
        function = None if implementation is None else build.load(implementation, device)
        note("its import", forms[0])
    if function is None:
        return json.dumps({"changes": [], "done": "not asked: the function cannot be found by name"})
    subject = Subject(operator, question["backend"], device, torch.float32, function)
    for form in forms:
        if not changes:
            now, scenario = subject.in_form(form), smallest(form)
            call = now.realise(scenario)
            now.gradients(call, now.outputs(call, scenario), scenario)
            note("its first forward and backward", form)
    return json.dumps({"changes": changes, "done": "import, first forward and backward"})


PROPERTY = Property("global-state", "defaults, modes, generators, flags and functions are left as they were", check)
