r"""A contract evaluated with more digits than float64, to judge implementations in float64.

A float64 reference errs as much as the float64 candidate that it judges. `Precise` evaluates the same reference, but
keeps each value as the unevaluated sum of two float64 tensors, high + low, where high is the value rounded to float64.
Operations that move data are applied to both parts. Arithmetic is done in numpy's `longdouble`, on x86 the 80-bit
format with a unit roundoff of 2^-64. K terms then err by about sqrt(K) 2^-64, for small K a two-thousandth of a float64
rounding.

`precisely` returns None if there is no precise value: if `longdouble` is float64 on this platform, if a reference uses
an operation that `ARITHMETIC` does not list, or if there are more than `LARGEST` terms (long double has no vector units
and no BLAS).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from spec.decomposing import functional, steps
from spec.modes import EagerMode
from spec.operations import CREATIONS, LINEAR, MOVES

#: Whether numpy's long double has more digits than float64 on this platform.
AVAILABLE = bool(np.finfo(np.longdouble).eps < np.finfo(np.float64).eps / 256)

#: Terms of one evaluation, about some tenths of a second of one core. An elementwise function counts as `_FUNCTION`.
LARGEST = 2**23
_FUNCTION = 16

#: Largest relative distance of a precise value from that of float64. A larger one comes from range or cancellation.
NEAR = 2.0**-20

Wide = Any  # numpy.ndarray of longdouble; its type parameters say no more

_aten = torch.ops.aten


def _elu(x: Wide, alpha: float = 1.0, scale: float = 1.0, input_scale: float = 1.0) -> Wide:
    below = alpha * np.expm1(np.minimum(x, 0) * input_scale)
    return np.where(x > 0, x, below) * scale


def _sum(x: Wide, dims: Sequence[int] | None = None, keepdim: bool = False) -> Wide:
    return np.sum(x, axis=tuple(dims) if dims else None, keepdims=keepdim)


def _mean(x: Wide, dims: Sequence[int] | None = None, keepdim: bool = False) -> Wide:
    total = _sum(x, dims, keepdim)
    return total / np.longdouble(x.size // max(np.size(total), 1))


#: The operations that are computed in long double, by torch's overload.
ARITHMETIC: dict[Any, Callable[..., Wide]] = {
    _aten._to_copy.default: lambda x, **_: x,
    _aten.abs.default: np.abs,
    _aten.add.Tensor: lambda x, y, alpha=1: x + alpha * y,
    _aten.add.Scalar: lambda x, y, alpha=1: x + alpha * y,
    _aten.addmm.default: lambda bias, x, y: bias + x @ y,
    _aten.clamp.default: lambda x, low=None, high=None: np.clip(x, low, high),
    _aten.clamp_max.default: np.minimum,
    _aten.clamp_min.default: np.maximum,
    _aten.copy.default: lambda x, y, non_blocking=False: np.broadcast_to(y, x.shape),  # noqa: ARG005
    _aten.cos.default: np.cos,
    _aten.div.Scalar: np.divide,
    _aten.div.Tensor: np.divide,
    _aten.elu.default: _elu,
    _aten.exp.default: np.exp,
    _aten.expm1.default: np.expm1,
    _aten.fill.Scalar: np.full_like,
    _aten.log.default: np.log,
    _aten.log1p.default: np.log1p,
    _aten.mean.default: _mean,
    _aten.mean.dim: _mean,
    _aten.mm.default: np.matmul,
    _aten.amax.default: lambda x, dims=(), keepdim=False: np.max(x, axis=tuple(dims) or None, keepdims=keepdim),
    _aten.amin.default: lambda x, dims=(), keepdim=False: np.min(x, axis=tuple(dims) or None, keepdims=keepdim),
    _aten.bmm.default: np.matmul,
    _aten.maximum.default: np.maximum,
    _aten.minimum.default: np.minimum,
    _aten.mul.Scalar: np.multiply,
    _aten.mul.Tensor: np.multiply,
    _aten.pow.Tensor_Scalar: np.power,
    _aten.reciprocal.default: np.reciprocal,
    _aten.relu.default: lambda x: np.maximum(x, 0),
    _aten.rsqrt.default: lambda x: 1 / np.sqrt(x),
    _aten.rsub.Scalar: lambda x, y, alpha=1: y - alpha * x,
    _aten.sigmoid.default: lambda x: 1 / (1 + np.exp(-x)),
    _aten.sign.default: np.sign,
    _aten.sin.default: np.sin,
    _aten.sqrt.default: np.sqrt,
    _aten.sub.Scalar: lambda x, y, alpha=1: x - alpha * y,
    _aten.sub.Tensor: lambda x, y, alpha=1: x - alpha * y,
    _aten.sum.default: _sum,
    _aten.sum.dim_IntList: _sum,
    _aten.tanh.default: np.tanh,
}

_PRODUCTS = frozenset({_aten.mm.default, _aten.bmm.default, _aten.addmm.default})


class NotPrecise(Exception):
    """This reference, or a call of this size, cannot be evaluated with more digits than float64."""


class Precise(EagerMode):  # type: ignore[no-untyped-call]
    """Evaluate with twice the digits: results are rounded to float64, and `low` returns what the rounding cut off."""

    def __init__(self) -> None:
        super().__init__()
        self._low: dict[int, tuple[Tensor, Tensor]] = {}
        #: The memory of which several tensors have a view.
        self._shared: set[int] = set()
        self._terms = 0

    def low(self, high: Tensor) -> Tensor:
        """What to add to a result of this mode; zeros for a tensor that this mode did not make."""
        # The tensor is kept beside its low part: an id is valid only while its object lives.
        found = self._low.get(id(high))
        return torch.zeros_like(high) if found is None else found[1]

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        instead = functional(func)
        if instead is not None and args[0].is_floating_point():
            if args[0].untyped_storage().data_ptr() in self._shared:
                raise NotPrecise(f"{func} writes to a tensor of which there is a view")
            written = self.__torch_dispatch__(instead, types, args, kwargs)
            low = self.low(written)
            self._remember(args[0].copy_(written), low)
            return args[0]
        made_of = None if func in MOVES or func in ARITHMETIC else steps(func)
        if made_of is not None:
            with self:
                return made_of(*args, **kwargs)
        if func in ARITHMETIC and any(tensor.is_floating_point() for tensor in _tensors(args)):
            return self._computed(func, args, kwargs)
        result = func(*args, **kwargs)
        if any(part.is_complex() for part in _tensors(result)):
            raise NotPrecise(f"{func} returns complex numbers")
        if any(value.alias_info is not None for value in func._schema.returns):
            self._shared.update(part.untyped_storage().data_ptr() for part in _tensors(result))
        if func in LINEAR:
            self._remember(result, func(*_mapped(args, self._low_of), **kwargs))
        elif func not in CREATIONS | {_aten._to_copy.default} and any(
            part.is_floating_point() for part in _tensors(result)
        ):
            raise NotPrecise(f"{func} is not listed in ARITHMETIC")
        return result

    def _low_of(self, tensor: Tensor) -> Tensor:
        return self.low(tensor) if tensor.is_floating_point() else tensor

    def _remember(self, result: Any, low: Any) -> None:
        for high, rest in zip(_tensors(result), _tensors(low), strict=True):
            if high.is_floating_point():
                self._low[id(high)] = high, rest

    def _computed(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor:
        largest = max(tensor.numel() for tensor in _tensors(args))
        self._terms += args[-2].numel() * args[-1].shape[-1] if func in _PRODUCTS else _FUNCTION * largest
        if self._terms > LARGEST:
            raise NotPrecise(f"it has more than {LARGEST} terms")
        with np.errstate(all="ignore"):
            value = np.asarray(ARITHMETIC[func](*_mapped(args, self._wide), **kwargs), dtype=np.longdouble)
            high = value.astype(np.float64)
            low = np.where(np.isfinite(high), value - high, 0).astype(np.float64)
        result = torch.from_numpy(high)
        self._remember(result, torch.from_numpy(low))
        return result

    def _wide(self, tensor: Tensor) -> Wide:
        return tensor.numpy().astype(np.longdouble) + self.low(tensor).numpy()


def _mapped(args: Any, change: Callable[[Tensor], Any]) -> Any:
    if isinstance(args, Tensor):
        return change(args)
    return type(args)(_mapped(part, change) for part in args) if isinstance(args, tuple | list) else args


def _tensors(value: Any) -> list[Tensor]:
    if isinstance(value, Tensor):
        return [value]
    return [tensor for part in value for tensor in _tensors(part)] if isinstance(value, tuple | list) else []


@dataclass(frozen=True)
class Values:
    """`exact`: the precise values, rounded once to float64. `losing_less`: the same before they are limited to float64.

    The two differ where the precise value is far from that of float64: long double overflows and underflows later, and
    cancels less. `exact` then takes the value of float64, because the range of the reference is part of the contract.
    But an implementation that loses less is right too: exp(logsigmoid(z)) in place of sigmoid(z) where 1 + exp(-z)
    overflows, for example.
    """

    exact: tuple[Tensor, ...]
    losing_less: tuple[Tensor, ...]


def precisely(evaluate: Callable[[], tuple[Tensor, ...]]) -> Values | None:
    """What `evaluate()` returns with more digits than float64; None if there is no such value.

    `evaluate` computes in float64 on the CPU, without autograd.
    """
    if not AVAILABLE:
        return None
    try:
        with Precise():
            results = evaluate()
    except NotPrecise:
        return None
    plain = evaluate()
    both = list(zip(results, plain, strict=True))
    exact = tuple(_limited(x, y) if y.is_floating_point() else y for x, y in both)
    return Values(exact, tuple(torch.where(x.isfinite(), x, y) if y.is_floating_point() else y for x, y in both))


def _limited(x: Tensor, y: Tensor) -> Tensor:
    """The precise values x where they are near those of float64, and else these."""
    return torch.where((x - y).abs() <= NEAR * y.abs(), x, y)
