"""What a contract that was derived from a reference function consists of; `python -m harness contract` writes its file.

The reference is plain torch, for any floating dtype. Its gradient is that of autograd, evaluated in float64 as the
reference itself is. A reference may compute in float32 for half types, `x.float()` at first and `.to(x.dtype)` at last:
then what is between the two is evaluated with the roundoff of float32, as in a block `spec.rounding.wide`. In backward
every step may be rounded to the dtype, since autograd does not say where a step belongs.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.overrides import TorchFunctionMode

from spec.contract import DTYPES, Draw, Family, Operator, Sizes, TensorArg
from spec.rounding import Widening, any_order


def function_of(where: str, name: str) -> Callable[..., Any]:
    """The function `name` of a Python file, or of a module that can be imported. Raises what its import raises.

    A file is imported once, under a name of its own.
    """
    if not where.endswith(".py"):
        return getattr(importlib.import_module(where), name)  # type: ignore[no-any-return]
    path = Path(where).resolve()
    module_name = f"reference_{path.stem}_{hashlib.sha256(str(path).encode()).hexdigest()[:8]}"
    if module_name not in sys.modules:
        found = importlib.util.spec_from_file_location(module_name, path)
        if found is None or found.loader is None:
            raise ImportError(f"{path} is not a Python file")
        module = importlib.util.module_from_spec(found)
        sys.modules[module_name] = module
        try:
            found.loader.exec_module(module)
        except BaseException:
            del sys.modules[module_name]
            raise
    return getattr(sys.modules[module_name], name)  # type: ignore[no-any-return]


class _Casts(TorchFunctionMode):
    """Casts of a reference that is evaluated in float64: one to float32 begins a wide block, one back ends it."""

    def __init__(self) -> None:
        super().__init__()
        self._wide = Widening()

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        target = _cast_to(func, args, kwargs)
        if target is None or not isinstance(args[0], Tensor) or args[0].dtype != torch.float64:
            return func(*args, **kwargs)
        if target == torch.float32:
            self._wide.begin()
            return args[0]
        if self._wide.end():
            return args[0] * 1  # rounded to the dtype once
        return args[0]

    def __exit__(self, *exception: Any) -> None:
        self._wide.end()
        super().__exit__(*exception)  # type: ignore[no-untyped-call]


def _cast_to(func: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> torch.dtype | None:
    """float32 or float64 if the call casts its first argument to it, else None."""
    if func is Tensor.float:
        return torch.float32
    if func is Tensor.double:
        return torch.float64
    if func in (Tensor.type_as, Tensor.to_dense) or func not in (Tensor.to, Tensor.type):
        return args[1].dtype if func is Tensor.type_as else None
    for value in (*args[1:], *kwargs.values()):
        dtype = value.dtype if isinstance(value, Tensor) else value
        if dtype in (torch.float32, torch.float64):
            return dtype
    return None


@dataclass(frozen=True)
class Reference:
    """A reference function as a contract needs it: tensors in, a tuple of tensors out, and a vector-Jacobian product.

    `tensors` are the names of the parameters that are tensors, in the order of the contract's inputs. `attributes` are
    passed by name with these values, to the reference and to every implementation.
    """

    function: Callable[..., Any]
    tensors: tuple[str, ...]
    attributes: Mapping[str, Any] = field(default_factory=dict)

    def forward(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        """The outputs of the reference."""
        exact = any(tensor.dtype == torch.float64 for tensor in inputs)
        # Attention is evaluated by its formula; the fused kernels have one operation for all of it.
        with sdpa_kernel(SDPBackend.MATH), _Casts() if exact else nullcontext():
            results = self.call(self.function, *inputs)
        return (results,) if isinstance(results, Tensor) else tuple(results)

    def vjp(self, inputs: tuple[Tensor, ...], cotangents: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        """The gradients of the real inputs by autograd; empty tensors for the others."""
        places = [place for place, tensor in enumerate(inputs) if tensor.is_floating_point()]

        def of_some(*some: Tensor) -> tuple[Tensor, ...]:
            given = dict(zip(places, some, strict=True))
            return self.forward(*(given.get(place, tensor) for place, tensor in enumerate(inputs)))

        made = torch.func.vjp(of_some, *(inputs[place] for place in places))
        with any_order():
            gradients = dict(zip(places, made[1](cotangents), strict=True))
        nothing = cotangents[0].new_empty(0)
        return tuple(gradients.get(place, nothing) for place in range(len(inputs)))

    def unspecified(
        self, args: tuple[TensorArg, ...], inputs: tuple[Tensor, ...], cotangents: tuple[Tensor, ...]
    ) -> tuple[Tensor, ...]:
        """NaN for each gradient that depends on a row which is not finite, and 0 elsewhere.

        Whether NaN times 0 is NaN there, or a mask makes it 0, no reference says for its implementations.
        """
        del cotangents
        marked: list[Tensor] = []
        rows = torch.zeros((), dtype=torch.bool)
        for arg, tensor in zip(args, inputs, strict=True):
            if tensor.is_floating_point() and arg.row_dim is not None:
                bad = ~tensor.movedim(arg.row_dim, 0).isfinite()
                rows = rows | bad.reshape(len(bad), math.prod(bad.shape[1:])).any(1)
        for arg, tensor in zip(args, inputs, strict=True):
            found = torch.zeros(tensor.shape, dtype=torch.float64)
            if arg.row_dim is not None and rows.dim():
                shape = [-1 if dim == arg.row_dim else 1 for dim in range(tensor.dim())]
                found.masked_fill_(rows.reshape(shape), math.nan)
            elif bool(rows.any()):
                found.fill_(math.nan)
            marked.append(found)
        return tuple(marked)

    def call(self, function: Callable[..., Any], *inputs: Tensor) -> Any:
        """Call the reference, or an implementation, as the contract does: tensors by position, attributes by name."""
        return function(*inputs, **self.attributes)

    def operator(
        self,
        name: str,
        inputs: tuple[TensorArg, ...],
        outputs: tuple[TensorArg, ...],
        cases: tuple[Any, ...],
        families: Sequence[str] = (),
        dtypes: tuple[torch.dtype, ...] = DTYPES,
    ) -> Operator:
        """The contract, with these value families of `FAMILIES`."""
        found = Operator(
            name=name,
            inputs=inputs,
            outputs=outputs,
            forward=self.forward,
            vjp=self.vjp,
            intermediates=lambda *_: {},
            cases=cases,
            unspecified=partial(self.unspecified, inputs),
            call=self.call,
            dtypes=dtypes,
        )
        made = tuple(Family(family, FAMILIES[family].purpose, FAMILIES[family].of(found)) for family in families)
        object.__setattr__(found, "families", made)
        return found


Values = dict[str, Tensor]


@dataclass(frozen=True)
class GenericFamily:
    """A value family for any operator: `change(rows, dtype, draw)` changes a tensor with rows first, in place."""

    purpose: str
    change: Callable[[Tensor, torch.dtype, Draw], None]

    def of(self, operator: Operator) -> Callable[[Sizes, Draw, torch.dtype], Values]:
        """The family of that operator: ordinary values, with those changed that have a row for each of the batch."""

        def make(sizes: Sizes, draw: Draw, dtype: torch.dtype) -> Values:
            values = operator.ordinary(sizes, draw)
            for arg in operator.inputs:
                if arg.is_floating and arg.row_dim is not None:
                    self.change(values[arg.name].movedim(arg.row_dim, 0), dtype, draw)
            return values

        return make


def _small(rows: Tensor, _: torch.dtype, __: Draw) -> None:
    rows.mul_(2.0**-10)


def _large(rows: Tensor, dtype: torch.dtype, _: Draw) -> None:
    rows.mul_(min(torch.finfo(dtype).max, 2.0**200) ** 0.5 / 16)


def _shifted(rows: Tensor, _: torch.dtype, __: Draw) -> None:
    rows.add_(8.0)


def _zero_rows(rows: Tensor, _: torch.dtype, __: Draw) -> None:
    rows[::2] = 0.0


def _denormals(rows: Tensor, dtype: torch.dtype, draw: Draw) -> None:
    quarter = torch.finfo(dtype).tiny / 4
    rows[::2] = draw.choice(tuple(rows[::2].shape), (quarter, -quarter, 1.0))


def _non_finite(rows: Tensor, dtype: torch.dtype, _: Draw) -> None:
    # Without -inf in bfloat16: a product with AMX may multiply the tail of a row by 0 in the next one, see spec.lltm.
    values = (float("nan"), float("inf")) if dtype == torch.bfloat16 else (float("nan"), float("inf"), -float("inf"))
    for row, value in enumerate(values[: len(rows)]):
        if rows[row].numel():
            rows[(row, *(0,) * (rows.dim() - 2), row % rows.shape[-1]) if rows.dim() > 1 else row] = value


#: By name: what suits any operator whose reference is finite there, and smooth.
FAMILIES = {
    "small-values": GenericFamily("values of a thousandth, where an epsilon counts", _small),
    "large-values": GenericFamily("rows whose squares nearly overflow", _large),
    "shifted-values": GenericFamily("rows whose mean is eight deviations", _shifted),
    "zero-rows": GenericFamily("every other row 0", _zero_rows),
    "denormals": GenericFamily("values below the smallest normal number in every other row", _denormals),
    "non-finite": GenericFamily("inf and NaN in three rows, which must stay in their rows", _non_finite),
}
