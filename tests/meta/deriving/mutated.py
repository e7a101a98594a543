"""The mutants of `implementations.py`, and whether the contract that is derived from a reference notices them."""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from harness.deriving.contract import derive_from
from harness.judging.judge import judge
from harness.judging.subject import Subject
from harness.properties import all_properties
from harness.report.cell import FAIL
from harness.report.levels import GRADIENTS, VALUES
from spec.contract import Operator
from tests.meta.deriving import implementations
from tests.meta.deriving.references import rms_norm
from tools.mutation.operators import Mutant, mutants

SOURCE = Path(str(implementations.__file__))
#: The properties of values and gradients, those that take least first.
QUICK = ("forward-parity", "vjp-parity", "sizes", "gradient-subsets")


def softmax(x: Tensor) -> Tensor:
    return torch.softmax(x, -1)


def swiglu(x: Tensor, gate: Tensor, up: Tensor) -> Tensor:
    return F.silu(x @ gate) * (x @ up)


def cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    return logits.logsumexp(-1) - logits.gather(-1, labels[:, None])[:, 0]


def rotary(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    left, right = x.chunk(2, -1)
    return x * cos + torch.cat([-right, left], -1) * sin


def layer_norm(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return F.layer_norm(x, (x.shape[-1],), weight, bias)


def attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
    return torch.softmax(scores.masked_fill(~mask, -1e4), -1) @ v


def _normal(*shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(0))


#: The reference of each implementation, and one call of it.
REFERENCES: dict[str, tuple[Callable[..., Any], tuple[Tensor, ...]]] = {
    "rms_norm": (rms_norm, (_normal(6, 64), _normal(64))),
    "softmax": (softmax, (_normal(6, 10),)),
    "swiglu": (swiglu, (_normal(6, 8), _normal(8, 12), _normal(8, 12))),
    "cross_entropy": (cross_entropy, (_normal(6, 10), torch.arange(6))),
    "rotary": (rotary, (_normal(2, 6, 8), _normal(6, 8), _normal(6, 8))),
    "layer_norm": (layer_norm, (_normal(6, 64), _normal(64), _normal(64))),
    "attention": (attention, (_normal(3, 5, 8), _normal(3, 7, 8), _normal(3, 7, 9), _normal(3, 5, 7) > -1)),
    "rms_norm_with_backward": (rms_norm, (_normal(6, 64), _normal(64))),
}


@cache
def contract(name: str) -> Operator:
    """The contract that is derived from the reference of an implementation."""
    reference, example = REFERENCES[name]
    if name == "rms_norm_with_backward":
        return contract("rms_norm")
    return derive_from(reference, example, name).operator


def every_mutant() -> dict[str, list[Mutant]]:
    """The mutants by the name of the implementation that they change."""
    text = SOURCE.read_text()
    found: dict[str, list[Mutant]] = {name: [] for name in REFERENCES}
    places = {
        node.lineno: node.name for node in ast.parse(text).body if isinstance(node, ast.FunctionDef | ast.ClassDef)
    }
    for mutant in mutants(SOURCE.name, text):
        name = places[max(line for line in places if line <= mutant.line)]
        found["rms_norm_with_backward" if name == "_NormWithBackward" else name].append(mutant)
    return found


def function_of(text: str, name: str) -> Callable[..., Any]:
    """The implementation of that name in a mutated source."""
    module = ModuleType("mutated")
    exec(compile(text, SOURCE.name, "exec"), module.__dict__)  # the project's own text, with one edit
    return getattr(module, name)  # type: ignore[no-any-return]


def caught_by(name: str, text: str, told: frozenset[str] = frozenset({FAIL})) -> str:
    """The property of values or gradients that tells one of these verdicts; empty if none does.

    Each is judged in one dtype.
    """
    function = function_of(text, name)
    levels = {key: each for key, each in all_properties().items() if each.level in (VALUES, GRADIENTS)}
    for key in (*QUICK, *(key for key in levels if key not in QUICK)):
        for dtype in (torch.float32, torch.float64):
            if levels[key].is_asked("cpu", str(dtype).removeprefix("torch.")):
                if judge(Subject(contract(name), name, "cpu", dtype, function), levels[key]).verdict in told:
                    return key
                break
    return ""
