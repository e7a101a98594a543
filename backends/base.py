"""How a backend describes itself: its devices, what it declares that it does not support, and where its code is.

A backend is a folder with an `__init__.py` that sets `BACKEND = Backend(...)` and, for each operator that it
has, a file named like the operator (`lltm.py`) that sets `IMPLEMENTATION` to one of

- `PythonFunction(lltm)`: a plain Python function with the contract's signature, or
- `CompiledOperator(...)`: sources that register `torch.ops.<namespace>.<operator>`, or
- `MissingDependency("triton")`, where the function needs a package that is not there. A backend of which every function
  needs a package says so once, in `Backend.needs`, and its files import the package.

A backend never compiles anything itself: `harness.building.build` does, so that flags, cache keys, locks and timeouts
are in one place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from backends.devices import CPU as CPU
from backends.devices import CUDA as CUDA
from backends.devices import CUDA_EMULATED as CUDA_EMULATED
from backends.devices import DEVICES as DEVICES
from backends.devices import SIMULATED as SIMULATED
from backends.devices import TRITON_INTERPRETED as TRITON_INTERPRETED
from spec.contract import DTYPES, Operator, Sizes, TensorArg

#: C++ that every compiled backend may use: argument checks, autograd and registration.
NATIVE = Path(__file__).parent / "_native"
#: Device functions, launches and the emulation that the CUDA backends share.
SHARED_CUDA = Path(__file__).parent / "_cuda"


@dataclass(frozen=True)
class PythonFunction:
    """An implementation that needs no build: `function(*inputs) -> outputs`."""

    function: Callable[..., Any]


@dataclass(frozen=True)
class CompiledOperator:
    """An implementation in C++ or CUDA that registers `torch.ops.<namespace>.<operator>`.

    `sources` ending in `.cu` go to nvcc on the device `cuda` and to the host compiler on `cuda-emulated`;
    all others go to the host compiler. Every source sees the macro `OPERATOR_NAMESPACE`. All headers in
    `include_dirs` are part of the build's key, so that an edit is never missed. Sources and `include_dirs` lie in the
    backend's own folder or in a shared one, never in that of another backend.
    """

    operator: str
    namespace: str
    sources: tuple[Path, ...]
    include_dirs: tuple[Path, ...] = ()
    flags: tuple[str, ...] = ("-O2",)
    #: From `torch.ops.<namespace>` to the function that replaces the operator while torch.func transforms a call. None
    #: where the operator supports that itself, or not at all.
    under_transforms: Callable[[Any], Callable[..., Any]] | None = None

    @property
    def has_cuda_sources(self) -> bool:
        """Whether nvcc is needed for the device `cuda`."""
        return any(source.suffix == ".cu" for source in self.sources)


@dataclass(frozen=True)
class MissingDependency:
    """An implementation that needs an optional package, which is not installed: the verdict is `not-run`."""

    package: str


Implementation = PythonFunction | CompiledOperator | MissingDependency


@dataclass(frozen=True)
class Declaration:
    """What a backend declares that it does not support: the cell's verdict is `declared`, with the reason.

    A None matches every operator, device or dtype. The harness checks that a declaration is still needed: a declared
    property that holds is reported. With `by_chance` it may hold, as where atomic operations happen to add up in one
    order; the cell is `declared` then too.
    """

    property: str
    reason: str
    operator: str | None = None
    device: str | None = None
    dtype: torch.dtype | None = None
    by_chance: bool = False

    def __post_init__(self) -> None:
        if not self.reason.strip():
            raise ValueError(f"a declaration on {self.property!r} needs a reason, but the reason is empty")

    def covers(self, property: str, operator: str, device: str, dtype: torch.dtype) -> bool:
        """Whether the declaration is about this cell."""
        return (
            self.property == property
            and self.operator in (None, operator)
            and self.device in (None, device)
            and self.dtype in (None, dtype)
        )


#: Tuples of one dtype, from which declarations are put together.
FLOAT32, FLOAT64 = (torch.float32,), (torch.float64,)
FLOAT16, BFLOAT16 = (torch.float16,), (torch.bfloat16,)
#: The half types, and all dtypes of a backend that computes in float32.
HALF = FLOAT16 + BFLOAT16
UP_TO_FLOAT32 = FLOAT32 + HALF


def declaration_of(
    declared: Iterable[Declaration], property: str, operator: str, device: str, dtype: torch.dtype
) -> Declaration | None:
    """The first of them that is about this cell, if there is one."""
    return next((each for each in declared if each.covers(property, operator, device, dtype)), None)


def declarations(
    operator: str,
    reason: str,
    properties: Mapping[str, tuple[torch.dtype, ...]],
    device: str | None = None,
    by_chance: bool = False,
) -> tuple[Declaration, ...]:
    """One reason for many properties of an operator, each in some dtypes."""
    return tuple(
        Declaration(property, reason, operator, device, dtype, by_chance)
        for property, dtypes in properties.items()
        for dtype in dtypes
    )


@dataclass(frozen=True)
class Peer:
    """A function of PyTorch that computes something else with the same shapes: timed beside an operator, never judged.

    `leaves(inputs)` are its arguments, with the sizes, dtype and device of the operator's inputs; gradients are taken
    with respect to them. `function(*leaves)` returns tensors of the shapes of the operator's outputs. `name` has a dot.
    """

    name: str
    leaves: Callable[[tuple[Tensor, ...]], tuple[Tensor, ...]]
    function: Callable[..., Any]


@dataclass(frozen=True)
class Backend:
    """One way of implementing operators. Its public name is its folder's, with `-` for `_`.

    `absent` names operators that a reader expects of it and that it lacks, each with the reason: all their cells are
    `declared`. An operator for which it has neither a file nor a reason has no cells.
    `on_request`, where it is not empty, says why the backend is judged only where it is named: all its cells are
    `not-run` in a run that names no backend. `beside` has, for an operator, the function that is timed beside it.
    `needs` maps each module that all its functions import to what pip installs, the package itself first: where one is
    missing, a run that names no backend says so in one line, and a run that names this backend has `not-run` cells.
    `lacks` names, for an operator, the forms that the backend does not have, each with the reason: they are not called,
    and a cell that passes says so.
    """

    summary: str
    devices: tuple[str, ...]
    dtypes: tuple[torch.dtype, ...] = DTYPES
    declared: tuple[Declaration, ...] = ()
    absent: Mapping[str, str] = field(default_factory=dict, hash=False)
    on_request: str = ""
    beside: Mapping[str, Peer] = field(default_factory=dict, hash=False)
    needs: Mapping[str, str] = field(default_factory=dict, hash=False)
    lacks: Mapping[str, Mapping[str, str]] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        for operator, reason in self.absent.items():
            if not reason.strip():
                raise ValueError(f"absent says that there is no {operator!r}, but the reason is empty")
        for operator, forms in self.lacks.items():
            for form, reason in forms.items():
                if not reason.strip():
                    raise ValueError(f"lacks says that {operator!r} has no form {form!r}, but the reason is empty")
        for device in self.devices:
            if device not in DEVICES:
                raise ValueError(f"devices holds {device!r}; a device is one of {', '.join(DEVICES)}")


def check_arguments(operator: Operator, *tensors: Tensor) -> Sizes:
    """Check rank, size, dtype and device of every argument against the contract; return the sizes.

    For implementations in Python. The first argument in which a size symbol stands alone fixes its value; a symbol that
    never does has the value that its first multiple or sum with a number, `2*depth` or `sequences + 1`, gives it.
    Raises TypeError for what is not a tensor of the argument's kind and for mixed dtypes and devices, ValueError for
    a wrong shape. The values of integers are not looked at.
    """
    sizes: dict[str, int] = {}
    origin: dict[str, str] = {}
    first = operator.inputs[0]
    for arg, tensor in zip(operator.inputs, tensors, strict=True):
        where = f"{operator.name}: {arg.name}"
        check_kind(where, tensor, arg.rule(), first.name, tensors[0], arg.dtype)
        if tensor.dim() != len(arg.shape):
            raise ValueError(
                f"{where} was of rank {tensor.dim()} with shape {tuple(tensor.shape)}, "
                f"but should be of rank {len(arg.shape)}: {arg.rule()}"
            )
        for dim, expression in enumerate(arg.shape):
            if expression.isidentifier() and expression not in sizes:
                sizes[expression] = tensor.shape[dim]
                origin[expression] = f"{arg.name}.shape[{dim}]"
    for arg, tensor in zip(operator.inputs, tensors, strict=True):
        for dim, expression in enumerate(arg.shape):
            factor, _, symbol = expression.partition("*")
            if factor.isdecimal() and symbol.isidentifier() and symbol not in sizes:
                sizes[symbol] = tensor.shape[dim] // int(factor)
                origin[symbol] = f"{arg.name}.shape[{dim}] / {factor}"
            symbol, _, more = expression.partition(" + ")
            if more.isdecimal() and symbol.isidentifier() and symbol not in sizes:
                sizes[symbol] = tensor.shape[dim] - int(more)
                origin[symbol] = f"{arg.name}.shape[{dim}] - {more}"
    for arg, tensor in zip(operator.inputs, tensors, strict=True):
        _check_shape(operator, arg, tensor, sizes, origin)
    return sizes


def check_kind(
    where: str, tensor: Tensor, rule: str, first_name: str, first: Tensor, dtype: torch.dtype | None = None
) -> None:
    """Raise TypeError unless `tensor` is a dense floating-point tensor with the dtype and on the device of the first.

    `where` begins the message: `lltm: bias`. `rule` is the shape that it should have, in symbols. `dtype` is for a
    tensor that has its own, whatever that of the first is: labels, for example.
    """
    if not isinstance(tensor, Tensor):
        raise TypeError(f"{where} was {type(tensor).__name__}, but should be a Tensor of shape {rule}")
    if dtype is not None and tensor.dtype != dtype:
        raise TypeError(f"{where} was of dtype {tensor.dtype}, but should be {dtype}; call .to({dtype})")
    if dtype is None and not tensor.is_floating_point():
        raise TypeError(f"{where} was of dtype {tensor.dtype}, but should be a floating-point tensor")
    if tensor.layout != torch.strided:
        raise TypeError(f"{where} was of layout {tensor.layout}, but should be torch.strided; call .to_dense()")
    if dtype is None and tensor.dtype != first.dtype:
        raise TypeError(f"{where} was {tensor.dtype}, but should be {first.dtype}, the dtype of {first_name}")
    if tensor.device != first.device:
        raise TypeError(f"{where} was on {tensor.device}, but should be on {first.device}, with {first_name}")


def _check_shape(operator: Operator, arg: TensorArg, tensor: Tensor, sizes: Sizes, origin: dict[str, str]) -> None:
    expected = arg.shape_for(sizes)
    if tuple(tensor.shape) != expected:
        because = ", ".join(f"{symbol} = {sizes[symbol]} from {place}" for symbol, place in origin.items())
        raise ValueError(
            f"{operator.name}: {arg.name} was {tuple(tensor.shape)}, "
            f"but should be {arg.rule()} = {expected}, where {because}"
        )
