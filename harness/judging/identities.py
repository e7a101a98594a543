"""Calls in which a result may equal an input, so that nothing was to be done: a function may return that input itself.

All inputs but one are 0 or 1, and so neutral for sums and products; indices count up. A size of 1 leaves nothing to sum
over. Which result then equals which input need not be known: what a call shares is seen without expected results.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from math import prod

import torch
from torch import Tensor

from harness.judging import harvested
from harness.judging.scenarios import representative
from spec.contract import Draw, Operator, Sizes, TensorArg, evaluate

#: Sizes that all occur with ordinary values.
_SWEPT = 12
#: What all sizes are where they are equal.
_EQUAL = 5
#: So many other inputs have each value beside each.
_FEW = 3
#: Elements of a call at most.
VOLUME = 2**15


def identities(
    operator: Operator, constants: Sequence[int], dtype: torch.dtype
) -> Iterator[tuple[Sizes, str, tuple[Tensor, ...]]]:
    """Sizes, the input that keeps its ordinary values, or `all`, and the inputs: small, then beyond each constant."""
    for sizes in _swept(operator):
        if _may_be_returned(operator, sizes):
            yield sizes, "all", _filled(operator, sizes, {}, dtype)
    for sizes in _sizes(operator, constants):
        for arg in _may_be_returned(operator, sizes):
            for inputs in _neutral(operator, sizes, arg, dtype):
                yield sizes, arg.name, inputs


def _swept(operator: Operator) -> Iterator[Sizes]:
    """Every small size of each symbol, the others ordinary or equal: one size may have a path of its own."""
    symbols = operator.symbols()
    for symbol, size in product(symbols, range(1, _SWEPT + 1)):
        yield {**representative(operator).sizes, symbol: size}
        yield {**dict.fromkeys(symbols, _EQUAL), symbol: size}


def _sizes(operator: Operator, constants: Sequence[int]) -> Iterator[Sizes]:
    """Ordinary sizes, one of them 1, all of them 1 but one, and all equal; then the same beyond each constant."""
    symbols, usual, ones = operator.symbols(), representative(operator).sizes, dict.fromkeys(operator.symbols(), 1)
    one = [{**usual, symbol: 1} for symbol in symbols]
    ordinary = [usual, *one, *({**ones, symbol: usual[symbol]} for symbol in symbols), dict.fromkeys(symbols, _EQUAL)]
    found = list(ordinary)
    for symbol, size in harvested.beyond(operator, constants):
        found += [{**sizes, symbol: size} for sizes in (usual, *one, ones)]
        found.append(dict.fromkeys(symbols, size))
    for sizes in found:
        if sum(prod(arg.shape_for(sizes)) for arg in (*operator.inputs, *operator.outputs)) <= VOLUME:
            yield sizes


def _may_be_returned(operator: Operator, sizes: Sizes) -> list[TensorArg]:
    """The inputs that have the shape of a result."""
    shapes = {arg.shape_for(sizes) for arg in operator.real_outputs}
    return [arg for arg in operator.inputs if arg.is_floating and arg.shape_for(sizes) in shapes]


def _neutral(operator: Operator, sizes: Sizes, kept: TensorArg, dtype: torch.dtype) -> Iterator[tuple[Tensor, ...]]:
    """The other inputs each 0 or 1: of few in every way, of many all but one the same; then the input itself 0 too."""
    others = [arg.name for arg in operator.inputs if arg.is_floating and arg is not kept and not arg.uniform]
    for values in product((0.0, 1.0), repeat=len(others)):
        if len(others) <= _FEW or min(values.count(0.0), values.count(1.0)) <= 1:
            yield _filled(operator, sizes, dict(zip(others, values, strict=True)), dtype)
    yield _filled(operator, sizes, dict.fromkeys((*others, kept.name), 0.0), dtype)


def _filled(operator: Operator, sizes: Sizes, values: dict[str, float], dtype: torch.dtype) -> tuple[Tensor, ...]:
    drawn = operator.ordinary(sizes, Draw(0))
    for arg in operator.inputs:
        tensor = drawn[arg.name]
        if arg.name in values:
            tensor.fill_(values[arg.name])
        elif not arg.is_floating and tensor.numel():
            low, high = (int(evaluate(bound, sizes)) for bound in (arg.low, arg.high))
            if not arg.offsets:
                drawn[arg.name] = (torch.arange(tensor.numel()) % max(high - low, 1) + low).reshape(tensor.shape)
            elif tensor.numel() == high - low + 1:  # each part has one element
                drawn[arg.name] = torch.arange(low, high + 1)
    return tuple(arg.cast(drawn[arg.name], dtype) for arg in operator.inputs)
