"""Notice when a candidate replaces functions that judge it: comparison functions, timers, torch itself.

A snapshot of them is taken before any candidate is imported, see `harness.judging.judge.bind`.
"""

from __future__ import annotations

import math
import sys
import time
from pathlib import Path
from types import BuiltinFunctionType, FunctionType, MethodDescriptorType, ModuleType, WrapperDescriptorType
from typing import Any

import torch

_TORCH = Path(torch.__file__).parent
_FUNCTIONS = (FunctionType, BuiltinFunctionType, MethodDescriptorType, WrapperDescriptorType)


def _watched() -> list[tuple[str, Any]]:
    places: list[tuple[str, Any]] = [
        ("torch", torch),
        ("torch.Tensor", torch.Tensor),
        ("torch.autograd", torch.autograd),
        ("torch.autograd.Function", torch.autograd.Function),
        ("torch.cuda", torch.cuda),
        ("torch.nn.functional", torch.nn.functional),
        ("torch.testing", torch.testing),
        ("math", math),
        ("time", time),
    ]
    # The judge and the contracts too; they are imported before the snapshot is taken.
    own = [(name, module) for name, module in sys.modules.items() if name.split(".")[0] in ("harness", "spec")]
    return places + [(name, module) for name, module in own if isinstance(module, ModuleType)]


def snapshot() -> dict[tuple[str, str], tuple[Any, Any]]:
    """Every function of every watched place: (place, name) -> (owner, function)."""
    return {
        (where, name): (owner, value)
        for where, owner in _watched()
        for name, value in list(vars(owner).items())
        if isinstance(value, _FUNCTIONS)
    }


def _is_torchs(function: Any) -> bool:
    """Whether the code is in torch's own files: torch wraps some of its functions at the first use of torch.compile."""
    code = getattr(function, "__code__", None)
    return code is not None and Path(code.co_filename).is_relative_to(_TORCH)


def wrapped_by_torch(function: Any, before: Any) -> bool:
    """Whether torch itself has wrapped a function in one of the same name: see `_is_torchs`."""
    return _is_torchs(function) and getattr(function, "__name__", "") == getattr(before, "__name__", None)


def undo(trusted: dict[tuple[str, str], tuple[Any, Any]]) -> list[str]:
    """Names of the functions that were replaced. Each is restored, so that the next candidate is not affected."""
    changed = []
    for (where, name), (owner, value) in trusted.items():
        there = vars(owner).get(name)
        if there is not value and not _is_torchs(there):
            changed.append(f"{where}.{name}")
            setattr(owner, name, value)
    return changed
