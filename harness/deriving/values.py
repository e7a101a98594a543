"""The ordinary values of the inputs: deviations, ranges of integers, and ranges of reals outside of which there is no
result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from harness.deriving.offsets import lasts
from harness.deriving.parameters import TensorParameter
from harness.deriving.sizes import GAUSSIAN, Call, caller, elements, small_sizes, takes
from harness.errors import UsageError
from spec.contract import Draw, Operator, Sizes, TensorArg

Forward = Callable[..., tuple[Tensor, ...]]
#: Deviations below this are those of an example that is nearly constant.
_LEAST_SCALE = 1e-3
#: Most elements of an example at whose sizes the reference is called again.
_ELEMENTS = 2**20


@dataclass(frozen=True)
class Inputs:
    """The inputs with their values, small sizes, and the reference as a function of sizes."""

    args: tuple[TensorArg, ...]
    small: dict[str, int]
    call: Call

    def ordinary(self) -> list[Tensor]:
        """Values at the small sizes, in float64 and int64."""
        draw = Draw(0)
        return [arg.ordinary(self.small, draw) for arg in self.args]


def inputs_of(
    where: str, parameters: Sequence[TensorParameter], lengths: Mapping[str, int], forward: Forward
) -> Inputs:
    """The inputs with the values at which the reference is finite: Gaussian ones if it can be.

    Raises UsageError if it is finite nowhere.
    """
    gaussian = tuple(_gaussian(parameter) for parameter in parameters)
    symbols = symbols_in(gaussian)
    ends = _ends(parameters, symbols, lengths)
    refused: UsageError | None = None
    for args in (gaussian, *_uniform(parameters, gaussian)):
        safe = tuple(
            replace(arg, high=ends.get(place, "1"), offsets=place in ends) if _is_integer(arg) else arg
            for place, arg in enumerate(args)
        )
        call = caller(safe, forward)
        try:
            small = small_sizes(where, symbols, lengths, call)
        except UsageError as error:
            refused = refused or error
            continue
        # Few values may lie inside of a range by chance.
        if lengths and args is gaussian and elements(lengths, args) <= _ELEMENTS and not takes(call, lengths):
            refused = UsageError(f"{where} returned inf or NaN for {GAUSSIAN}, or raised: pass another --example")
            continue
        found = list(safe)
        for place, arg in enumerate(safe):
            if _is_integer(arg) and not arg.offsets:
                low, high = _bounds(found, place, symbols, small, forward, parameters[place].example)
                found[place] = replace(arg, low=low, high=high)
        return Inputs(tuple(found), small, caller(found, forward))
    assert refused is not None
    raise refused


def symbols_in(args: tuple[TensorArg, ...]) -> tuple[str, ...]:
    """The size symbols of these tensors."""

    def nothing(*_: object) -> tuple[Tensor, ...]:
        return ()

    return Operator("", args, (), nothing, nothing, lambda *_: {}, ()).symbols()


def _gaussian(parameter: TensorParameter) -> TensorArg:
    scale, example = "1", parameter.example
    real = parameter.dtype is None or parameter.dtype.is_floating_point
    if real and example is not None and _is_truth(example):
        shape = parameter.shape or ()
        return TensorArg(parameter.name, shape, differentiable=False, dtype=parameter.dtype, uniform=True, whole=True)
    if real and example is not None and example.numel() > 1:
        deviation = float(example.double().std())
        scale = f"{deviation:.2g}" if deviation >= _LEAST_SCALE else "1"
    return TensorArg(parameter.name, parameter.shape or (), differentiable=real, dtype=parameter.dtype, scale=scale)


def _uniform(parameters: Sequence[TensorParameter], gaussian: tuple[TensorArg, ...]) -> Iterator[tuple[TensorArg, ...]]:
    """The inputs in the ranges of their examples: first those of one sign alone, then all."""
    ranges = [_range(parameter) for parameter in parameters]
    for chosen in (lambda low, high: low >= 0 or high <= 0, lambda low, high: True):  # noqa: ARG005
        found = tuple(
            replace(arg, uniform=True, low=f"{limits[0]:.4g}", high=f"{limits[1]:.4g}")
            if limits is not None and chosen(*limits) and not arg.whole
            else arg
            for arg, limits in zip(gaussian, ranges, strict=True)
        )
        if found != gaussian:
            yield found


def _range(parameter: TensorParameter) -> tuple[float, float] | None:
    example = parameter.example
    if example is None or example.numel() == 0 or not example.is_floating_point():
        return None
    low, high = float(example.min()), float(example.max())
    if low == high:
        low, high = sorted((low / 2, 2 * low))
    return (low, high) if low < high else None


def _is_truth(example: Tensor) -> bool:
    """Whether a tensor of real numbers has both 0 and 1 and no others: labels, or a mask to multiply with."""
    return example.numel() > 1 and set(example.flatten().tolist()) == {0.0, 1.0}


def _is_integer(arg: TensorArg) -> bool:
    return not arg.is_floating and arg.dtype != torch.bool


def _ends(
    parameters: Sequence[TensorParameter], symbols: tuple[str, ...], lengths: Mapping[str, int]
) -> dict[int, str]:
    """The places of tensors that have the offsets of parts, each with the symbol of whose length they are."""
    ends = dict[int, str]()
    for place, last in lasts([parameter.example for parameter in parameters]).items():
        own = parameters[place].shape or ()
        firsts = [parameter.shape[0] for parameter in parameters if parameter.shape]
        end = next((one for one in firsts if one in symbols and one not in own and lengths.get(one) == last), None)
        if end is not None:
            ends[place] = end
    return ends


def _bounds(
    inputs: list[TensorArg],
    place: int,
    symbols: tuple[str, ...],
    small: Sizes,
    forward: Forward,
    example: Tensor | None,
) -> tuple[str, str]:
    """The range of integers, the upper bound excluded: up to the symbol up to which the reference takes them.

    Where it is none, the range of the example, if the reference takes that at other sizes too; else only zeros.
    """

    def is_taken(value: int, sizes: Sizes = small) -> bool:
        draw = Draw(0)
        given = [arg.cast(arg.ordinary(sizes, draw), torch.float64) for arg in inputs]
        given[place] = torch.full_like(given[place], value)
        try:
            forward(*given)
        except Exception:
            return False
        return True

    def follows(symbol: str) -> bool:
        """Whether the bound is the symbol at another size too, and not a number that the small size happens to be."""
        for larger in (small[symbol] + 3, 2 * small[symbol], 3 * small[symbol]):
            sizes = {**small, symbol: larger}
            if is_taken(0, sizes):
                return is_taken(larger - 1, sizes) and not is_taken(larger, sizes)
        return True

    for symbol in symbols:
        if is_taken(small[symbol] - 1) and not is_taken(small[symbol]) and follows(symbol):
            return "0", symbol
    if example is not None and example.numel():
        low, most = int(example.min()), int(example.max())
        if is_taken(low) and is_taken(most):
            return str(low), str(most + 1)
    return "0", "1"
