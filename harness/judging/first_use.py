"""Effects of the import and the first call: load and call an implementation in a fresh process and watch its state."""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch

from harness import discovery
from harness.building import build
from harness.errors import Failure, NoEvidence
from harness.judging import fresh_process
from harness.judging.process_state import Watch
from harness.judging.scenario import Scenario
from harness.judging.scenarios import smallest
from harness.judging.subject import Subject
from spec.contract import Operator

#: Seconds for a fresh process, which loads the implementation, opens the device and makes one call.
LIMIT = 300.0


def warm_up(subject: Subject, scenario: Scenario) -> None:
    """Call the reference, so that what torch changes at its own first use is not attributed to the candidate."""
    call = subject.realise(scenario)
    outputs = subject.operator.forward(*call.inputs)
    torch.autograd.grad(outputs, call.inputs, call.cotangents)


def hold(subject: Subject) -> str:
    """Load and call the implementation in a process of its own. Raises Failure if it changed global state there.

    Returns in words what was done, or why it was not.
    """
    if subject.dtype != torch.float32:
        return "done in float32 only"
    if "asan" in os.environ.get("LD_PRELOAD", ""):
        return "not done: under a sanitizer it would be another build"
    address = _address(subject.raw or subject.function)
    if not address and subject.backend not in _backends():
        return "not done: the function cannot be found by name"
    about = {
        "operator": subject.operator.name,
        "backend": subject.backend,
        "device": subject.device,
        "contract": getattr(sys.modules.get(subject.operator.forward.__module__), "__file__", None),
        **address,
    }
    if (json.dumps(about), subject.operator.form) in _answered:
        return "done with the first form"
    forms = [form.form for form in subject.operator.every_form()]
    answer = json.loads(_asked(json.dumps({**about, "forms": forms})))
    if answer["changes"]:
        name, phase, now, was, where = answer["changes"][0]
        raise Failure(
            f"{name} was {now} after {phase} in a fresh process, but should be left as it was, {was} [{where}]"
        )
    _answered.update((json.dumps(about), form) for form in forms[1:])
    return str(answer["done"])


#: The questions that were answered, with the forms that each answer covered besides the first.
_answered: set[tuple[str, str]] = set()


@lru_cache(maxsize=1)
def _backends() -> frozenset[str]:
    return frozenset(discovery.all_backends())


def _address(function: Callable[..., Any]) -> dict[str, str]:
    """Module, file and attribute by which a Python function, or the class of an instance, can be found again."""
    for name in (getattr(function, "__module__", None), type(function).__module__):
        module = sys.modules.get(name or "")
        file = getattr(module, "__file__", None)
        if module is None or file is None or module.__name__.partition(".")[0] == "torch":
            continue  # an operator that torch holds is found through its backend
        for attribute, value in vars(module).items():
            if value is function or value is type(function):
                return {"module": module.__name__, "file": file, "attribute": attribute}
    return {}


@lru_cache(maxsize=64)
def _asked(question: str) -> str:
    try:
        return fresh_process.asked(__name__, answer.__name__, question, LIMIT)
    except fresh_process.TooLate as error:
        raise Failure(
            f"import and first call took more than {LIMIT:g} s in a fresh process, but should return"
        ) from error
    except fresh_process.NoAnswer as error:
        raise NoEvidence(f"the fresh process that watches import and first call ended with: {error}") from error


def answer(asked: str) -> str:
    """Runs in the fresh process: load, call, and return what changed as JSON."""
    question = json.loads(asked)
    device, contracts = question["device"], discovery.operators()
    if question["operator"] not in contracts:  # a contract that was given by its path
        contracts = discovery.operators((Path(question["contract"]),))
    operator = contracts[question["operator"]]
    forms = [operator.in_form(name) for name in question["forms"]]
    idle = Subject(operator, question["backend"], device, torch.float32, operator.forward)
    for form in forms:
        warm_up(replace(idle, operator=form, function=form.forward), smallest(form))
    changes: list[list[str]] = []
    watch = Watch(device)

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
        return json.dumps({"changes": [], "done": "not done: the function cannot be found by name"})
    subject = Subject(operator, question["backend"], device, torch.float32, function)
    for form in forms:
        if not changes:
            now, scenario = subject.in_form(form), smallest(form)
            call = now.realise(scenario)
            now.gradients(call, now.outputs(call, scenario), scenario)
            note("its first forward and backward", form)
    return json.dumps({"changes": changes, "done": "import, first forward and backward"})
