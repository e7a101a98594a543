"""A derived contract as a Python file that a person can read and correct, and that `--spec-path` takes."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from harness.deriving.derived import Derived
from harness.judging.compare import compare
from harness.judging.oracle import expected
from harness.judging.scenario import Scenario
from harness.judging.scenarios import smallest
from spec.contract import DTYPES, TensorArg


def source(derived: Derived, folder: Path) -> str:
    """The contract as a Python file in `folder`; with `--spec-path` it is judged by as any other contract."""
    operator, where = derived.operator, derived.where
    if where.endswith(".py"):
        where = str(Path(where).resolve())
        if folder.resolve() in Path(where).parents:
            where = os.path.relpath(where, folder)
    at = f'str(Path(__file__).parent / "{where}")' if where.endswith(".py") else repr(where)
    reference = derived.reference
    unrepeated = tuple(family.name for family in operator.families if not family.repeats)
    lines = [
        f'"""The contract of {operator.name}, derived from the function {derived.function} of {where}.',
        "",
        "Correct what is wrong: shapes, scales, ranges, cases, value families. Shapes are expressions over the size",
        "symbols; rows of the symbol `batch` do not depend on each other. `scale` is the deviation of ordinary values.",
        "",
        *(f"Found: {sentence}." for sentence in derived.found),
        *(f"Left out: {reason}." for reason in derived.left_out),
        *_allowances(derived),
        '"""',
        "",
        *(["from pathlib import Path", ""] if where.endswith(".py") else []),
        *(["import torch", ""] if _needs_torch(derived) else []),
        "from spec.contract import Case, TensorArg",
        "from spec.derived import Reference, function_of",
        "",
        "REFERENCE = Reference(",
        f"    function_of({at}, {derived.function!r}),",
        f"    tensors={reference.tensors!r},",
        f"    attributes={_literal(dict(reference.attributes))},",
        *([f"    positional={reference.positional!r},"] if reference.positional else []),
        *([f"    constants={reference.constants!r},"] if reference.constants else []),
        *(["    shifts=True,  # the largest values that it subtracts need no gradient"] if reference.shifts else []),
        ")",
        "",
        "OPERATOR = REFERENCE.operator(",
        f"    {operator.name!r},",
        "    inputs=(",
        *(f"        {_written(arg)}," for arg in operator.inputs),
        "    ),",
        "    outputs=(",
        *(f"        {_written(arg, is_output=True)}," for arg in operator.outputs),
        "    ),",
        "    cases=(",
        *(
            f"        Case({case.name!r}, {dict(case.sizes)!r}, {case.origin!r}, frozenset({sorted(case.tags)!r})),"
            for case in operator.cases
        ),
        "    ),",
        f"    families={derived.families!r},",
        *([f"    unrepeated={unrepeated!r},"] if unrepeated else []),
        *([f"    dtypes=({', '.join(map(str, operator.dtypes))},),"] if operator.dtypes != DTYPES else []),
        *(["    has_steps=True,  # it rounds to whole numbers"] if operator.has_steps else []),
        *(["    is_derivative=False,  # the gradient is chosen"] if not operator.is_derivative else []),
        ")",
    ]
    return "\n".join(lines) + "\n"


def _allowances(derived: Derived) -> Iterator[str]:
    """What rounding may do at the small sizes, by dtype: the root mean square that is allowed."""
    operator = derived.operator
    case: Scenario = smallest(operator)
    sizes = ", ".join(f"{symbol}={size}" for symbol, size in case.sizes)
    yield f"Allowed root mean square of the error at {sizes}, beside that of the values:"
    for dtype in operator.dtypes:
        found = expected(operator, case, dtype)
        named = [*found.outputs.items(), *((f"gradient of {name}", it) for name, it in found.gradients.items())]
        parts = []
        for name, envelope in named:
            if envelope.discrete:
                near = int((envelope.sigma > 0).sum())
                exactly = f"{name} exactly, of {int(envelope.usable.sum()) - near} of {envelope.exact.numel()} elements"
                parts.append(exactly + (f" and of {near} within {int(envelope.sigma.max())}" if near else ""))
                continue
            allowed = {each.name: each.allowed for each in compare(envelope.exact, envelope).statistics}
            size = float(envelope.exact.square().mean().sqrt()) if envelope.exact.numel() else 0.0
            parts.append(f"{name} {allowed.get('rms', 0.0):.2g} of {size:.2g}")
        yield f"    {str(dtype).removeprefix('torch.')}: {', '.join(parts)}"


def _needs_torch(derived: Derived) -> bool:
    operator = derived.operator
    in_attributes = "torch." in _literal(dict(derived.reference.attributes))
    return in_attributes or operator.dtypes != DTYPES or any(arg.dtype for arg in (*operator.inputs, *operator.outputs))


def _literal(value: Any) -> str:
    """The value as Python reads it; infinities and NaN have no literal."""
    if isinstance(value, float) and not math.isfinite(value):
        return f"float('{value}')"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key!r}: {_literal(part)}" for key, part in value.items()) + "}"
    if isinstance(value, tuple | list):
        text = ", ".join(map(_literal, value))
        if isinstance(value, list):
            return f"[{text}]"
        return f"({text},)" if len(value) == 1 else f"({text})"
    return str(value) if isinstance(value, torch.dtype) else repr(value)


def _written(arg: TensorArg, is_output: bool = False) -> str:
    parts = [repr(arg.name), repr(arg.shape)]
    if arg.scale != "1":
        parts.append(f"scale={arg.scale!r}")
    if arg.any_rank:
        parts.append("any_rank=True")
    if not arg.differentiable:
        parts.append("differentiable=False")
    if arg.dtype is not None:
        parts.append(f"dtype={arg.dtype}")
    if arg.wide:
        parts.append("wide=True")
    if arg.uniform:
        parts.append("uniform=True")
    if arg.whole:
        parts.append("whole=True")
    if arg.offsets:
        parts.append("offsets=True")
    if (arg.uniform or not arg.is_floating) and not is_output:
        parts += [f"low={arg.low!r}", f"high={arg.high!r}"]
    return f"TensorArg({', '.join(parts)})"
