"""The sizes of a derived contract: cases that the reference takes, and the shapes of its outputs in their symbols."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain, combinations, combinations_with_replacement, product

import torch
from torch import Tensor

from harness.deriving.wording import first_line
from harness.errors import UsageError
from spec.contract import Case, Draw, Operator, Sizes, TensorArg, evaluate

#: Sizes of the representative case, one for each symbol in order: all different, odd or below a vector's width. None is
#: so small that a mask of that length may leave a single element.
_SMALL = (3, 4, 5, 7, 6, 9, 8, 11, 10)
#: Around vectors, warps and blocks.
_TAILS = (31, 32, 33, 127, 128, 129, 257, 1023, 1024, 1025)
#: How many larger lengths of a symbol are tried, to see how those of outputs depend on it; strides that are looked for.
_LARGER, _STRIDES = 5, (2, 3, 4)
#: Most elements of a call with such a size.
_ELEMENTS = 2**20

#: The ordinary values, in a message.
GAUSSIAN = "values around 0 with the deviation of the example"

Call = Callable[[Sizes], tuple[Tensor, ...]]


def caller(inputs: Sequence[TensorArg], forward: Callable[..., tuple[Tensor, ...]]) -> Call:
    """A function that calls the reference with ordinary values in float64 for some sizes."""

    def call(sizes: Sizes) -> tuple[Tensor, ...]:
        draw = Draw(0)
        return forward(*(arg.cast(arg.ordinary(sizes, draw), torch.float64) for arg in inputs))

    return call


def takes(call: Call, sizes: Sizes) -> bool:
    """Whether the reference takes these sizes, and is finite there."""
    try:
        return all(bool(result.isfinite().all()) for result in call(sizes))
    except Exception:
        return False


def small_sizes(where: str, symbols: Sequence[str], example: Mapping[str, int], call: Call) -> dict[str, int]:
    """Small sizes, all different, that the reference takes; those of the example if it takes no others.

    Some references have conditions that no shape shows: a width that the number of heads divides. Then each symbol
    keeps a size that is a fraction of the example's.
    """
    every = {symbol: _SMALL[place % len(_SMALL)] for place, symbol in enumerate(symbols)}
    for factor in (1, 2, 4):
        multiples = {symbol: factor * (place + 2) for place, symbol in enumerate(symbols)} if factor > 1 else every
        if takes(call, multiples):
            return multiples
    for divisor in (16, 8, 4, 2, 1) if example else ():
        shrunk = {symbol: max(size // divisor, 1) for symbol, size in example.items()}
        lost = divisor > 1 and len(set(shrunk.values()) - {1}) < len(set(example.values()) - {1})
        if set(shrunk) == set(symbols) and not lost and takes(call, shrunk):
            return shrunk
    try:
        call(every)
    except Exception as error:
        sizes = ", ".join(f"{symbol}={size}" for symbol, size in every.items())
        raise UsageError(
            f"{where} raised {first_line(error)} for {sizes}: pass --example FILE.py:FUNCTION, a function "
            "that returns the arguments of a call that it takes"
        ) from error
    raise UsageError(
        f"{where} returned inf or NaN for {GAUSSIAN}, but should be finite: pass an --example whose values lie where "
        "it is finite"
    )


def cases(
    symbols: Sequence[str], small: Sizes, example: Mapping[str, int], call: Call, inputs: Sequence[TensorArg]
) -> tuple[Case, ...]:
    """Cases that the reference takes: the small one, ones, empty lengths, tails, and the example's own sizes.

    Where a length of 0 leaves no element of any output, it is asked for the rows alone: the last batch of a data loader
    may be empty, but no layer has a state without elements.
    """
    found = [Case("small", dict(small), "small, all different where that is possible", frozenset({"size", "small"}))]

    def add(name: str, sizes: Sizes, origin: str, *tags: str) -> None:
        if (
            elements(sizes, inputs) <= _ELEMENTS
            and all(dict(case.sizes) != sizes for case in found)
            and takes(call, sizes)
        ):
            found.append(Case(name, dict(sizes), origin, frozenset({"size", *tags})))

    add("ones", dict.fromkeys(symbols, 1), "the least that is not empty", "small")
    for symbol in symbols:
        empty = {**small, symbol: 0}
        if symbol == "batch" or (takes(call, empty) and any(result.numel() for result in call(empty))):
            add(f"no-{symbol}", empty, "an empty dimension")
        for size in _TAILS:
            add(f"{symbol}-{size}", {**small, symbol: size}, "tail of a vector, a warp or a block")
    usual = dict(example) or {**dict.fromkeys(symbols, 64), **({symbols[-1]: 256} if symbols else {})}
    # The smallest of these is judged too, which takes many evaluations; a large example is for timing alone.
    if elements(usual, inputs) <= _ELEMENTS and takes(call, usual):
        found.append(Case("example", usual, "the sizes of the example", frozenset({"benchmark"})))
    else:
        found.append(Case("usual", dict(small), "the small sizes", frozenset({"benchmark"})))
        if example:
            found.append(Case("example", usual, "the sizes of the example", frozenset({"benchmark"})))
    return tuple(found)


def with_gradients(operator: Operator, found: Sequence[Case]) -> tuple[tuple[Case, ...], tuple[str, ...]]:
    """The cases without the empty ones at which the gradient of the reference raises; and a sentence for each of those.

    F.pixel_shuffle returns an empty image of an empty batch, but its backward raises.
    """
    kept, sentences = [], []
    for case in found:
        if 0 in case.sizes.values():
            try:
                draw = Draw(0)
                inputs = tuple(arg.cast(arg.ordinary(case.sizes, draw), torch.float64) for arg in operator.inputs)
                outputs = operator.forward(*inputs)
                operator.evaluated(inputs, tuple(torch.ones_like(y) for y in outputs if y.is_floating_point()))
            except Exception as error:
                empty = ", ".join(symbol for symbol, size in case.sizes.items() if size == 0)
                sentences.append(f"{empty}=0: the gradient of the reference raised {first_line(error)}")
                continue
        kept.append(case)
    return tuple(kept), tuple(sentences)


def elements(sizes: Sizes, inputs: Sequence[TensorArg]) -> int:
    """How many elements a call has."""
    return sum(torch.Size(arg.shape_for(sizes)).numel() for arg in inputs)


def outputs_of(
    where: str, symbols: Sequence[str], small: Sizes, call: Call, stated: tuple[tuple[str, ...], ...] | None
) -> tuple[TensorArg, ...]:
    """The outputs, with shapes in the symbols: as the annotation states them, or as other sizes show.

    Raises UsageError for a length that is no simple expression of the symbols.
    """
    results = call(small)
    names = ["output"] if len(results) == 1 else [f"output_{place}" for place in range(len(results))]
    known = {name for shape in stated or () for text in shape for name in re.findall(r"[A-Za-z_]\w*", text)}
    if stated is not None and len(stated) == len(results) and known <= set(symbols):
        return tuple(TensorArg(name, shape) for name, shape in zip(names, stated, strict=True))
    changed = list(_other_sizes(symbols, small, call))
    shapes = [[tuple(result.shape) for result in call(sizes)] for sizes in changed]
    found = []
    for place, name in enumerate(names):
        lengths = [[shape[place][dim] for shape in shapes] for dim in range(len(shapes[0][place]))]
        found.append(TensorArg(name, tuple(_expression(where, name, row, changed, symbols) for row in lengths)))
    return tuple(found)


def _other_sizes(symbols: Sequence[str], small: Sizes, call: Call) -> Iterator[dict[str, int]]:
    """The small sizes; then each symbol larger, alone and beside another one, as far as the reference takes it."""
    yield dict(small)
    grown: dict[str, list[int]] = {}
    for symbol in symbols:
        larger = [small[symbol] + more for more in range(1, 1 + _LARGER)]
        every = dict.fromkeys((*larger, 2 * small[symbol], 3 * small[symbol]))
        grown[symbol] = [size for size in every if takes(call, {**small, symbol: size})][:_LARGER]
        yield from ({**small, symbol: size} for size in grown[symbol])
    for one, other in combinations((symbol for symbol in symbols if grown[symbol]), 2):
        both = {**small, one: grown[one][-1], other: grown[other][0]}
        if takes(call, both):
            yield both


def _expression(where: str, name: str, lengths: list[int], sizes: list[dict[str, int]], symbols: Sequence[str]) -> str:
    for expression in chain(_simple(symbols, lengths[0]), _linear(lengths, sizes, symbols)):
        if all(evaluate(expression, at) == length for at, length in zip(sizes, lengths, strict=True)):
            return expression
    at = ", ".join(f"{symbol}={size}" for symbol, size in sizes[0].items())
    raise UsageError(
        f"{where}: a dimension of {name} was {lengths[0]} for {at}, and {', '.join(map(str, lengths[1:9]))}, ... where "
        "some of these are larger, which is no simple expression of them: annotate what it returns, for example -> "
        "Float[Tensor, 'batch 2*features']"
    )


def _linear(lengths: list[int], sizes: list[dict[str, int]], symbols: Sequence[str]) -> Iterator[str]:
    """Sums of multiples of the symbols on which a length depends, and such a sum divided by a stride."""
    first = sizes[0]
    alone: dict[str, list[tuple[int, int]]] = {}
    for at, length in zip(sizes[1:], lengths[1:], strict=True):
        other = [symbol for symbol in symbols if at[symbol] != first[symbol]]
        if len(other) == 1:
            alone.setdefault(other[0], []).append((at[other[0]] - first[other[0]], length - lengths[0]))
    used = {symbol: steps for symbol, steps in alone.items() if any(change for _, change in steps)}
    slopes = {symbol: [change / step for step, change in steps] for symbol, steps in used.items()}
    if slopes and all(len(set(of_one)) == 1 and of_one[0].is_integer() for of_one in slopes.values()):
        yield _sum({symbol: int(of_one[0]) for symbol, of_one in slopes.items()}, lengths[0], first)
    for stride in _STRIDES:
        for signs in product((1, -1), repeat=len(used)):
            of_signs = dict(zip(used, signs, strict=True))
            for rest in range(stride):
                yield f"({_sum(of_signs, stride * lengths[0] + rest, first)})//{stride}"


def _sum(factors: Mapping[str, int], total: int, at: Sizes) -> str:
    """`2*x + y - 3`: with these factors, and a number so that it is `total` for the sizes `at`."""
    number = total - sum(factor * at[symbol] for symbol, factor in factors.items())
    terms = [*((factor, symbol) for symbol, factor in factors.items()), *([(number, "")] if number else [])]
    text = ""
    for factor, symbol in sorted(terms, key=lambda term: (term[0] < 0, not term[1])):
        size = abs(factor)
        term = (symbol if size == 1 else f"{size}*{symbol}") if symbol else str(size)
        text += f"{' - ' if factor < 0 else ' + '}{term}" if text else f"{'-' if factor < 0 else ''}{term}"
    return text


def _simple(symbols: Sequence[str], length: int) -> Iterator[str]:
    """A symbol, a multiple, a product or a sum of two, one more or less, a number."""
    yield from symbols
    for symbol in symbols:
        for factor in (2, 3, 4):
            yield f"{factor}*{symbol}"
            yield f"{symbol}/{factor}"
    for one, other in combinations_with_replacement(symbols, 2):
        yield f"{one}*{other}"
        yield f"{one} + {other}"
    for symbol in symbols:
        yield f"{symbol} + 1"
        yield f"{symbol} - 1"
    yield str(length)
