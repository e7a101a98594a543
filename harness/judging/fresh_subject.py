"""How a fresh process finds the implementation that a subject has here: by its backend, or by module, file and name."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

from harness import discovery
from harness.building import build
from harness.judging.subject import Subject
from spec.contract import Operator

Question = dict[str, Any]


def why_not(subject: Subject) -> str:
    """Why no fresh process can judge it; empty if one can."""
    if "asan" in os.environ.get("LD_PRELOAD", ""):
        return "under a sanitizer it would be another build"
    if subject.operator.name not in discovery.operators() and _contract(subject) is None:
        return "the contract is in no file"
    if not _address(subject.raw or subject.function) and subject.backend not in _backends():
        return "the function cannot be found by name"
    return ""


def described(subject: Subject) -> Question:
    """Where operator and implementation can be found again, for JSON."""
    contract = _contract(subject)
    return {
        "operator": subject.operator.name,
        "backend": subject.backend,
        "device": subject.device,
        "contract": None if contract is None else str(contract),
        **_address(subject.raw or subject.function),
    }


def _contract(subject: Subject) -> Path | None:
    """The file of a contract that is none of the suite's: the one that was given, or the one of its module."""
    module = sys.modules.get(subject.operator.forward.__module__)
    found = getattr(module, "OPERATOR", None)
    if module is not None and module.__file__ and isinstance(found, Operator) and found.name == subject.operator.name:
        return Path(module.__file__)
    return discovery.contract_file(subject.operator.name)


@lru_cache(maxsize=1)
def _backends() -> frozenset[str]:
    return frozenset(discovery.all_backends())


def _address(function: Callable[..., Any]) -> dict[str, str]:
    """Module, file and attribute by which a Python function, or the class of an instance, can be found again."""
    for name in (getattr(function, "__module__", None), type(function).__module__):
        module = sys.modules.get(name or "")
        file = getattr(module, "__file__", None)
        if module is None or file is None or module.__name__.partition(".")[0] in ("torch", *sys.stdlib_module_names):
            continue  # an operator that torch holds is found through its backend; a partial is not found
        for attribute, value in vars(module).items():
            if value is function or value is type(function):
                return {"module": module.__name__, "file": file, "attribute": attribute}
    return {}


# In the fresh process


def operator(question: Question) -> Operator:
    """The contract of the question."""
    contracts = discovery.operators()
    if question["operator"] not in contracts:  # a contract that was given by its path
        contracts = discovery.operators((Path(question["contract"]),))
    return contracts[question["operator"]]


def imported(question: Question) -> Callable[..., Any] | None:
    """The implementation, or the class that must be called for it; None if it is not there."""
    if "attribute" in question:
        name = question["module"]
        known = importlib.util.find_spec(name.partition(".")[0]) is not None
        module = importlib.import_module(name) if known else discovery.import_file(Path(question["file"]), "fresh")
        found: Callable[..., Any] = getattr(module, question["attribute"])
        return found
    backend = discovery.all_backends().get(question["backend"])
    implementation = None if backend is None else backend.implementation(question["operator"])
    return None if implementation is None else build.load(implementation, question["device"])


def made(found: Callable[..., Any]) -> Callable[..., Any]:
    """An instance, if it is a class."""
    return found() if isinstance(found, type) else found
