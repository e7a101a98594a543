"""Derive a contract from a reference function, and write it as a file that a person can read and correct."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from filelock import FileLock
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from harness import discovery
from harness.building.cache import cache_root
from harness.deriving.parameters import TensorParameter, parameters_of
from harness.deriving.refusals import refuse
from harness.deriving.shapes import symbols_of
from harness.deriving.sizes import Call, caller, cases, outputs_of, small_sizes
from harness.errors import UsageError
from harness.report.atomic_write import write_atomically
from spec import derived as derived_contracts
from spec.contract import DTYPES, Draw, Operator, Sizes, TensorArg
from spec.derived import FAMILIES, Reference, function_of

#: How far rows may differ from the same rows alone, in float64: sums in another order.
_ROWS_AGREE = 1e-10
#: How far a gradient may change when all values change by `_STEP`, relative to its norm, where there is no kink.
_SMOOTH, _STEP = 1e-3, 1e-7


@dataclass(frozen=True)
class Derived:
    """A derived contract: where its reference is, and what was found."""

    where: str
    function: str
    operator: Operator
    reference: Reference
    families: tuple[str, ...]
    left_out: tuple[str, ...]


def derive(text: str, example: str = "") -> Derived:
    """The contract of `FILE.py:FUNCTION` or `package.module:FUNCTION`; `example` names a function in the same way.

    Raises UsageError, with the reason and what to do, for a reference that cannot be used.
    """
    where, function = _found("--reference", text)
    return derive_from(function, _found("--example", example)[1] if example else None, text, where)


def derive_from(function: Callable[..., Any], example: Any = None, text: str = "", where: str = "") -> Derived:
    """The contract of a function; `example` is a tuple or dict of its arguments, or a function that returns one.

    `text` names the function in messages, and `where` is its file or module. Raises as `derive` does.
    """
    text = text or getattr(function, "__name__", "the reference")
    found = parameters_of(function, text, example)
    reference = Reference(function, tuple(p.name for p in found.tensors), found.attributes)
    parameters = found.tensors
    if any(parameter.shape is None for parameter in parameters):
        exact = tuple(replace(p, example=_exact(p.example)) for p in parameters)
        parameters = symbols_of(text, exact, reference.forward)
    inputs = tuple(_argument(parameter) for parameter in parameters)
    lengths = _lengths(parameters)
    inputs, small, call = _with_ranges(text, inputs, lengths, reference)
    symbols = _symbols(inputs)
    outputs = outputs_of(text, symbols, small, call, found.outputs)
    rows = _row_symbol(inputs, outputs, small, reference)
    renamed = _renaming(symbols, rows)
    inputs, outputs = (tuple(_renamed(arg, renamed) for arg in args) for args in (inputs, outputs))
    small, lengths = ({renamed.get(k, k): v for k, v in sizes.items()} for sizes in (small, lengths))
    inputs = tuple(_of_any_rank(arg, place, inputs, small, reference) for place, arg in enumerate(inputs))
    call = caller(inputs, reference.forward)
    name = function.__name__
    name += "_by_reference" if name in discovery.operators() else ""
    made = cases([renamed.get(symbol, symbol) for symbol in symbols], small, lengths, call, inputs)
    bare = reference.operator(name, inputs, outputs, made)
    refuse(text, bare, small)
    families, left_out = _families(bare, small)
    dtypes = DTYPES
    if _casts_to_float32(reference, inputs, small):
        dtypes = tuple(dtype for dtype in DTYPES if dtype != torch.float64)
        left_out += ("float64: the reference computes in float32",)
    operator = reference.operator(name, inputs, outputs, made, families, dtypes)
    return Derived(where, function.__name__, operator, reference, families, left_out)


class _Casts(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Whether anything was cast from float64 to float32."""

    found: bool = False

    def __torch_dispatch__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        self.found |= func is torch.ops.aten._to_copy.default and kwargs.get("dtype") == torch.float32
        return func(*args, **kwargs)


def _casts_to_float32(reference: Reference, inputs: tuple[TensorArg, ...], small: Sizes) -> bool:
    draw = Draw(0)
    given = [arg.cast(arg.ordinary(small, draw), torch.float64) for arg in inputs]
    with _Casts() as seen:  # type: ignore[no-untyped-call]
        reference.call(reference.function, *given)
    return bool(seen.found)


def contract_file(text: str, example: str = "") -> tuple[Path, str]:
    """The file of a derived contract in the cache, and the operator's name. It is derived once for the same sources."""
    read = [path.read_bytes() for path in _sources(text, example)]
    digest = hashlib.sha256(b"\0".join([text.encode(), example.encode(), *read])).hexdigest()[:16]
    path = cache_root() / "contracts" / f"{digest}.py"
    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(path.with_suffix(".lock")):
        if not path.exists():
            write_atomically(path, source(derive(text, example), path.parent))
    name: str = discovery.import_file(path, f"external_spec_{path.stem}").OPERATOR.name
    return path, name


def _sources(*texts: str) -> Iterator[Path]:
    """The files of these functions, and those that derive a contract."""
    for text in texts:
        where = text.rpartition(":")[0]
        if where.endswith(".py"):
            if not Path(where).exists():
                raise UsageError(f"{where} does not exist")
            yield Path(where)
    yield Path(str(derived_contracts.__file__))
    yield from sorted(Path(__file__).parent.glob("*.py"))


def _found(option: str, text: str) -> tuple[str, Callable[..., Any]]:
    where, _, name = text.rpartition(":")
    if not where or not name:
        raise UsageError(f"{option} was {text!r}, but should be FILE.py:FUNCTION or package.module:FUNCTION")
    if where.endswith(".py") and not Path(where).exists():
        raise UsageError(f"{option}: {where} does not exist")
    try:
        function = function_of(where, name)
    except AttributeError:
        raise UsageError(f"{option}: {where} has no function {name!r}") from None
    except Exception as error:
        raise UsageError(f"{option}: {where} does not import: {type(error).__name__}: {error}") from error
    return where, function


def _exact(tensor: Tensor | None) -> Tensor | None:
    return tensor if tensor is None or not tensor.is_floating_point() else tensor.detach().cpu().double()


def _argument(parameter: TensorParameter) -> TensorArg:
    scale = "1"
    if parameter.example is not None and parameter.example.is_floating_point() and parameter.example.numel() > 1:
        scale = f"{max(float(parameter.example.double().std()), 1e-3):.2g}"
    real = parameter.dtype is None
    return TensorArg(parameter.name, parameter.shape or (), differentiable=real, dtype=parameter.dtype, scale=scale)


def _symbols(inputs: tuple[TensorArg, ...]) -> tuple[str, ...]:
    shapes = Operator("", inputs, (), _nothing, _nothing, lambda *_: {}, ())
    return shapes.symbols()


def _nothing(*_: Any) -> tuple[Tensor, ...]:
    return ()


def _lengths(parameters: tuple[TensorParameter, ...]) -> dict[str, int]:
    """The example's own sizes; empty without an example."""
    found: dict[str, int] = {}
    for parameter in parameters:
        if parameter.example is None:
            return {}
        for symbol, length in zip(parameter.shape or (), parameter.example.shape, strict=False):
            if symbol.isidentifier():
                found[symbol] = length
    return found


def _with_ranges(
    text: str, inputs: tuple[TensorArg, ...], lengths: Mapping[str, int], reference: Reference
) -> tuple[tuple[TensorArg, ...], dict[str, int], Call]:
    """The inputs with the ranges of their integers, small sizes, and the reference as a function of sizes."""
    symbols = _symbols(inputs)
    safe = tuple(replace(arg, high="1") if _is_integer(arg) else arg for arg in inputs)
    small = small_sizes(text, symbols, lengths, caller(safe, reference.forward))
    found = list(safe)
    for place, arg in enumerate(safe):
        if _is_integer(arg):
            found[place] = replace(arg, high=_high(found, place, symbols, small, reference))
    return tuple(found), small, caller(found, reference.forward)


def _is_integer(arg: TensorArg) -> bool:
    return not arg.is_floating and arg.dtype != torch.bool


def _high(inputs: list[TensorArg], place: int, symbols: tuple[str, ...], small: Sizes, reference: Reference) -> str:
    """The symbol up to which the reference takes integers; "1", only zeros, if it is none."""
    for symbol in symbols:
        fits = []
        for value in (small[symbol] - 1, small[symbol]):
            draw = Draw(0)
            given = [arg.cast(arg.ordinary(small, draw), torch.float64) for arg in inputs]
            given[place] = torch.full_like(given[place], value)
            try:
                reference.forward(*given)
                fits.append(True)
            except Exception:
                fits.append(False)
        if fits == [True, False]:
            return symbol
    return "1"


def _row_symbol(
    inputs: tuple[TensorArg, ...], outputs: tuple[TensorArg, ...], small: Sizes, reference: Reference
) -> str | None:
    """The first symbol whose rows do not depend on each other: any of them alone give the same rows of all outputs."""
    for symbol in dict.fromkeys(symbol for arg in outputs for symbol in arg.shape):
        if not symbol.isidentifier() or not all(arg.shape.count(symbol) == 1 for arg in outputs):
            continue
        if any(arg.shape.count(symbol) > 1 for arg in inputs):
            continue
        draw = Draw(2)
        given = [arg.cast(arg.ordinary(small, draw), torch.float64) for arg in inputs]
        rows = torch.tensor([small[symbol] - 1, 0])
        try:
            picked = reference.forward(*(_picked(x, arg, symbol, rows) for x, arg in zip(given, inputs, strict=True)))
        except Exception:
            continue
        whole = reference.forward(*given)
        pairs = zip(outputs, whole, picked, strict=True)
        if all(_near(_picked(y, arg, symbol, rows), part) for arg, y, part in pairs):
            return symbol
    return None


def _picked(tensor: Tensor, arg: TensorArg, symbol: str, rows: Tensor) -> Tensor:
    return tensor.index_select(arg.shape.index(symbol), rows) if symbol in arg.shape else tensor


def _near(one: Tensor, other: Tensor) -> bool:
    return one.shape == other.shape and bool(((one - other).abs() <= _ROWS_AGREE * (1 + one.abs())).all())


def _of_any_rank(
    arg: TensorArg, place: int, inputs: tuple[TensorArg, ...], small: Sizes, reference: Reference
) -> TensorArg:
    """The tensor, marked if the reference takes it with one more leading dimension."""
    draw = Draw(0)
    given = [each.cast(each.ordinary(small, draw), torch.float64) for each in inputs]
    given[place] = given[place].unsqueeze(0)
    try:
        reference.forward(*given)
    except Exception:
        return arg
    return replace(arg, any_rank=True)


def _renaming(symbols: tuple[str, ...], rows: str | None) -> dict[str, str]:
    """`batch` for the symbol of independent rows, and for no other."""
    renamed = {"batch": "batch_"} if "batch" in symbols and rows != "batch" else {}
    return renamed if rows is None else {**renamed, rows: "batch"}


def _renamed(arg: TensorArg, names: Mapping[str, str]) -> TensorArg:
    def text(expression: str) -> str:
        for old, new in names.items():
            expression = re.sub(rf"\b{re.escape(old)}\b", new, expression)
        return expression

    return replace(arg, shape=tuple(map(text, arg.shape)), scale=text(arg.scale), high=text(arg.high))


def _families(operator: Operator, small: Sizes) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The value families at which the reference is finite and smooth, and why the others are left out."""
    kept, left_out = [], []
    for name, family in FAMILIES.items():
        if not any(arg.row_dim is not None for arg in operator.inputs):
            left_out.append(f"{name}: no input has rows that do not depend on each other")
            continue
        sizes = {**small, "batch": max(small["batch"], 4)}
        values = family.of(operator)(sizes, Draw(0), torch.float32)
        inputs = tuple(arg.cast(values[arg.name], torch.float64) for arg in operator.inputs)
        if name == "non-finite":
            kept.append(name)
            continue
        results = _results(operator, inputs)
        if not all(bool(result.isfinite().all()) for result in results):
            left_out.append(f"{name}: the reference is not finite there")
        elif not _is_smooth(operator, inputs, results):
            left_out.append(f"{name}: the gradient of the reference jumps there")
        else:
            kept.append(name)
    return tuple(kept), tuple(left_out)


def _results(operator: Operator, inputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    outputs = operator.forward(*inputs)
    return *outputs, *operator.vjp(inputs, tuple(torch.ones_like(output) for output in outputs))


def _is_smooth(operator: Operator, inputs: tuple[Tensor, ...], results: tuple[Tensor, ...]) -> bool:
    for step in (_STEP, -_STEP):
        moved = tuple(x + step * (x.abs() + _STEP) if x.is_floating_point() else x for x in inputs)
        for one, other in zip(results, _results(operator, moved), strict=True):
            if one.numel() and not float((one - other).norm()) <= _SMOOTH * max(float(one.norm()), 1e-300):
                return False
    return True


def source(derived: Derived, folder: Path) -> str:
    """The contract as a Python file in `folder`; with `--spec-path` it is judged by as any other contract."""
    operator = derived.operator
    where = derived.where
    if where.endswith(".py"):
        where = str(Path(where).resolve())
        if folder.resolve() in Path(where).parents:
            where = os.path.relpath(where, folder)
    at = f'str(Path(__file__).parent / "{where}")' if where.endswith(".py") else repr(where)
    lines = [
        f'"""The contract of {operator.name}, derived from the function {derived.function} of {where}.',
        "",
        "Correct what is wrong: shapes, scales, ranges, cases, value families. Shapes are expressions over the size",
        "symbols; rows of the symbol `batch` do not depend on each other. `scale` is the deviation of ordinary values.",
        *(f"Left out: {reason}." for reason in derived.left_out),
        '"""',
        "",
        *(["from pathlib import Path", ""] if where.endswith(".py") else []),
        *(["import torch", ""] if any(arg.dtype for arg in operator.inputs) or operator.dtypes != DTYPES else []),
        "from spec.contract import Case, TensorArg",
        "from spec.derived import Reference, function_of",
        "",
        "REFERENCE = Reference(",
        f"    function_of({at}, {derived.function!r}),",
        f"    tensors={derived.reference.tensors!r},",
        f"    attributes={dict(derived.reference.attributes)!r},",
        ")",
        "",
        "OPERATOR = REFERENCE.operator(",
        f"    {operator.name!r},",
        "    inputs=(",
        *(f"        {_written(arg)}," for arg in operator.inputs),
        "    ),",
        "    outputs=(",
        *(f"        {_written(arg)}," for arg in operator.outputs),
        "    ),",
        "    cases=(",
        *(
            f"        Case({case.name!r}, {dict(case.sizes)!r}, {case.origin!r}, frozenset({sorted(case.tags)!r})),"
            for case in operator.cases
        ),
        "    ),",
        f"    families={derived.families!r},",
        *([f"    dtypes=({', '.join(map(str, operator.dtypes))},),"] if operator.dtypes != DTYPES else []),
        ")",
    ]
    return "\n".join(lines) + "\n"


def _written(arg: TensorArg) -> str:
    parts = [repr(arg.name), repr(arg.shape)]
    if arg.scale != "1":
        parts.append(f"scale={arg.scale!r}")
    if arg.any_rank:
        parts.append("any_rank=True")
    if arg.dtype is not None:
        parts += ["differentiable=False", f"dtype={arg.dtype}", f"low={arg.low!r}", f"high={arg.high!r}"]
    return f"TensorArg({', '.join(parts)})"
