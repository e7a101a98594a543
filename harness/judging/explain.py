"""Explain what is wrong with a tensor, in the terms of the person who wrote the kernel.

The size of an error says little; what the tensor would be right for says much. So a wrong tensor is compared with the
answers to other questions: one cotangent left out, two gates exchanged, scaled, transposed, every row equal to the
first. If one of them fits within the allowance, the failure says so.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations

import torch
from torch import Tensor

from harness.judging.compare import Comparison, compare
from harness.judging.oracle import evaluate, expected
from harness.judging.scenario import Scenario, realise
from spec.contract import Operator, Sizes, TensorArg
from spec.envelope import Envelope

#: One in so many rows would have its wrong elements where the input is largest by chance.
_BY_CHANCE = 1000


def explain(
    operator: Operator,
    scenario: Scenario,
    arg: TensorArg,
    is_gradient: bool,
    got: Tensor,
    envelope: Envelope,
    found: Comparison,
) -> list[str]:
    """Sentences, the most useful first: what the tensor equals instead, then where it is wrong."""
    if envelope.discrete:
        sentences = list(_discrete_instead(got.detach().cpu(), arg, envelope))[:1]
    else:
        value = got.detach().cpu().to(torch.float64)
        sentences = list(_equals_instead(operator, scenario, arg, is_gradient, value, envelope))[:2]
        if is_gradient and not sentences and _is_at_maxima(operator, scenario, arg, envelope, found):
            sentences.append(
                "only the largest elements of rows are wrong: if a maximum is subtracted, detach it, since its own "
                "gradient is 0 but for rounding"
            )
    where = where_wrong(found.wrong, arg, dict(scenario.sizes))
    if where:
        sentences.append(where)
    if scenario.values != "normal":
        sentences.append(f"the inputs are {scenario.values}: {operator.family(scenario.values).purpose}")
    return sentences


def _is_at_maxima(
    operator: Operator, scenario: Scenario, arg: TensorArg, envelope: Envelope, found: Comparison
) -> bool:
    """Whether all elements that are wrong are the largest of the input in the last dimension, and not by chance."""
    values = realise(operator, scenario, envelope.dtype).inputs[operator.inputs.index(arg)]
    count = int(found.wrong.sum())
    if not count or values.dim() == 0 or values.shape[-1] ** min(count, 10) < _BY_CHANCE:
        return False
    return not bool((found.wrong & (values != values.amax(-1, keepdim=True))).any())


def _discrete_instead(got: Tensor, arg: TensorArg, envelope: Envelope) -> Iterator[str]:
    """The same for integers and truth values, of which there are no multiples."""
    exact, usable = envelope.exact, envelope.usable
    if not bool(got[usable].any()):
        yield "it is False everywhere" if arg.dtype == torch.bool else "it is zero everywhere"
        return
    if arg.dtype == torch.bool:
        if torch.equal(got[usable], ~exact[usable]):
            yield "it is True where it should be False, and False where it should be True"
        return
    differences = set((got[usable].double() - exact[usable].double()).tolist())
    if len(differences) == 1:
        difference = int(differences.pop())
        yield f"every element is {abs(difference)} too {'large' if difference > 0 else 'small'}"
    rows = arg.row_dim or 0
    if exact.dim() >= 1 and exact.shape[rows] > 1:
        answer = exact.narrow(rows, 0, 1).expand_as(exact)
        if torch.equal(got[usable], answer[usable]):
            yield "every row equals what row 0 should be"


def _equals_instead(
    operator: Operator, scenario: Scenario, arg: TensorArg, is_gradient: bool, got: Tensor, envelope: Envelope
) -> Iterator[str]:
    exact, usable = envelope.exact, envelope.usable

    def fits(answer: Tensor) -> bool:
        return (
            compare(got, replace(envelope, exact=answer)).holds
            and not compare(exact, replace(envelope, exact=answer)).holds
        )

    if not bool(got[usable].any()):
        yield "it is zero everywhere"
        return
    if is_gradient:
        used = [out.name for out in operator.real_outputs if dict(scenario.cotangents).get(out.name) != "missing"]
        for name in used if len(used) > 1 else ():
            kinds = {**dict(scenario.cotangents), name: "missing"}
            other = expected(operator, replace(scenario, cotangents=tuple(kinds.items())), envelope.dtype)
            if fits(other.gradients[arg.name].exact):
                yield f"it is what the gradient would be if the cotangent of {name} were ignored"
    sizes = dict(scenario.sizes)
    for first, second in _exchangeable(arg, sizes):
        if fits(_exchange(exact, 0, first, second)):
            yield f"it is right but for {first[0]} and {second[0]}, which are exchanged"
    if not is_gradient:
        yield from (
            f"it is what the result would be with {first} and {second} exchanged"
            for first, second, answer in _with_exchanged_inputs(operator, scenario, envelope.dtype, arg)
            if fits(answer)
        )
    if exact.dim() == 2 and exact.shape[0] == exact.shape[1] and fits(exact.t()):
        yield "it is the transpose of what it should be"
    rows = arg.row_dim or 0
    if exact.dim() >= 1 and exact.shape[rows] > 1 and fits(exact.narrow(rows, 0, 1).expand_as(exact)):
        yield "every row equals what row 0 should be"
    y, value = exact[usable], got[usable]
    if bool(value.isfinite().all()) and y.numel() > 1 and bool(y.any()):
        factor = float(torch.dot(value, y) / torch.dot(y, y))
        if factor != 0 and compare(got / factor, envelope).holds:
            yield f"it is {factor:.4g} times what it should be"


Block = tuple[str, int, int]


def _exchangeable(arg: TensorArg, sizes: Sizes) -> list[tuple[Block, Block]]:
    blocks = arg.blocks_of(0, sizes)
    return [(a, b) for a, b in combinations(blocks, 2) if a[2] - a[1] == b[2] - b[1] > 0]


def _exchange(tensor: Tensor, dim: int, first: Block, second: Block) -> Tensor:
    index = torch.arange(tensor.shape[dim])
    index[first[1] : first[2]], index[second[1] : second[2]] = (
        torch.arange(second[1], second[2]),
        torch.arange(first[1], first[2]),
    )
    return tensor.index_select(dim, index)


def _with_exchanged_inputs(
    operator: Operator, scenario: Scenario, dtype: torch.dtype, wanted: TensorArg
) -> Iterator[tuple[str, str, Tensor]]:
    """(block, block, output `wanted`) for calls in which a pair of blocks is exchanged in every input that has them."""
    sizes = dict(scenario.sizes)
    call = realise(operator, scenario, dtype).to_float64()
    pairs = {(a[0], b[0]): None for arg in operator.inputs for a, b in _exchangeable(arg, sizes)}
    position = [arg.name for arg in operator.outputs].index(wanted.name)
    for names in pairs:
        inputs = list(call.inputs)
        for k, arg in enumerate(operator.inputs):
            for first, second in _exchangeable(arg, sizes):
                if (first[0], second[0]) == names:
                    inputs[k] = _exchange(inputs[k], 0, first, second)
        cotangents = tuple(
            torch.zeros(arg.shape_for(sizes), dtype=torch.float64) if arg.is_floating else None
            for arg in operator.outputs
        )
        yield *names, evaluate(operator, replace(call, inputs=tuple(inputs), cotangents=cotangents))[position]


def where_wrong(wrong: Tensor, arg: TensorArg, sizes: Sizes) -> str:
    """`6 of 30 elements are wrong: rows 0..2 of 3, columns 3..4 of 5`, with the names of blocks; "" if none is."""
    count = int(wrong.sum())
    if count == 0:
        return ""
    words = f"{count} of {wrong.numel()} elements are wrong"
    parts = []
    for dim in range(wrong.dim()):
        others = [other for other in range(wrong.dim()) if other != dim]
        hit = wrong.any(dim=others) if others else wrong
        indices = hit.nonzero().flatten().tolist()
        axis = ("rows", "columns")[dim] if wrong.dim() == 2 else f"dimension {dim}"
        if len(indices) == wrong.shape[dim]:
            continue
        blocks = [name for name, begin, end in arg.blocks_of(dim, sizes) if bool(hit[begin:end].any())]
        named = f" ({', '.join(blocks)})" if blocks else ""
        parts.append(f"{axis} {_ranges(indices)} of {wrong.shape[dim]}{named}")
    return f"{words}: {', '.join(parts)}" if parts else words


def _ranges(indices: list[int]) -> str:
    """`0..2, 7, 9..12`, shortened after four ranges."""
    ranges: list[list[int]] = []
    for index in indices:
        if ranges and index == ranges[-1][1] + 1:
            ranges[-1][1] = index
        else:
            ranges.append([index, index])
    words = [str(a) if a == b else f"{a}..{b}" for a, b in ranges[:4]]
    return ", ".join(words) + (", ..." if len(ranges) > 4 else "")
