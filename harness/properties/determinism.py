"""The same call gives the same bits every time.

Training that cannot be repeated cannot be debugged; sums by atomic additions are the usual cause. Repeated calls are
compared with the first one bit for bit: outputs and gradients, at once and after other work.

The report also says whether a row of the batch gives the same bits at every place in it; no implementation fails by
that. BLAS libraries compute the last rows of a product by another kernel than the first (MKL does so even in float64).
At the end of an array, PyTorch's own elementwise operations use a scalar tanh in place of the vector one, with another
rounding. Both are right. Only the second effect is measured: the inputs are small multiples of 1/4, so that every
product and every partial sum is exact in any order. `invariants` checks that a row is right at every place.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from backends.base import SIMULATED
from harness.judging.bits import bits, hold_bits, results
from harness.judging.property import Property
from harness.judging.scenario import Call, Scenario
from harness.judging.scenarios import representative, smallest, tagged
from harness.judging.subject import Subject
from harness.report.levels import SAFE
from spec.contract import Draw, Operator, TensorArg

#: Calls that are compared. A result that changes in half of all calls is missed at one size with probability 2^-3, at
#: all three sizes with probability 2^-9.
REPEATS = 4

#: Calls of a small size with many rows, and how many rows. A race that shows in one call of ten is missed with
#: probability 0.9^40.
OFTEN, ROWS_OFTEN = 40, 4099
#: The same of an operator without a batch: tokens or features, and fewer calls, since attention takes their square.
OTHERS_OFTEN, MANY_OTHERS = 20, 1031

#: Rows of the batch that change places: a prime, so that it is no multiple of any vector or tile.
ROWS = 13

#: Inputs whose products and sums are exact: up to 16 terms of at most 1 in steps of 1/16 need 8 bits, as bfloat16 has;
#: more terms are exact too if half types are accumulated in float32.
EXACT = tuple(k / 4 for k in range(-4, 5))


def check(subject: Subject) -> dict[str, Any]:
    """Repeats at three sizes, many at one of many rows; then, for the figures, each row at each place.

    A simulated GPU runs the size with the most rows in float32 only.
    """
    operator = subject.operator
    scenarios = [smallest(operator), *(Scenario.of(case) for case in tagged(operator, "benchmark")[:1])]
    # Simulated blocks run one after the other, in the same order each time: many of them show no more than few.
    if subject.device not in SIMULATED or subject.dtype == torch.float32:
        many_rows = max(tagged(operator, "size"), key=lambda case: case.sizes.get("batch", 0))
        scenarios.append(Scenario.of(many_rows))
    for scenario in scenarios:
        _repeats(subject, scenario, REPEATS)
    often = OFTEN if "batch" in operator.symbols() else OTHERS_OFTEN
    if subject.device not in SIMULATED:
        _repeats(subject, _beyond_a_block(operator), often)
    return {"scenarios": len(scenarios), "repeats": REPEATS, "often": often, "place of a row": _places(subject)}


def _beyond_a_block(operator: Operator) -> Scenario:
    """A small call with more rows than a block, and no multiple of one."""
    symbols = operator.symbols()
    symbol, size = ("batch", ROWS_OFTEN) if "batch" in symbols else (symbols[0], MANY_OTHERS)
    sizes = {**representative(operator).sizes, symbol: size}
    return Scenario(tuple(sizes.items()), name="often")


def _repeats(subject: Subject, scenario: Scenario, repeats: int) -> None:
    where = f"[{scenario.describe(subject.operator)}]"
    drawn = subject.realise(scenario)
    first = results(subject, _again(drawn), scenario)
    for number in range(2, repeats + 1):
        when = f"in call {number}"
        if number == repeats:
            other = replace(smallest(subject.operator), seed=1)
            results(subject, subject.realise(other), other)
            when += " (after a call with other values)"
        hold_bits(results(subject, _again(drawn), scenario), first, when, "as in the first call", where)


def _again(drawn: Call) -> Call:
    """The same values in new tensors: to draw thousands of rows anew takes as long as all else."""
    inputs = tuple(tensor.detach().clone().requires_grad_(tensor.requires_grad) for tensor in drawn.inputs)
    return Call(inputs, tuple(g if g is None else g.clone() for g in drawn.cotangents))


def _places(subject: Subject) -> str:
    """Rotate the batch through all its places, at values whose products are exact. Returns the report's figure."""
    operator = subject.operator
    if any(arg.row_dim is None for arg in operator.outputs):
        return "not measured: some output has no row for each row of the batch"
    sizes = {**representative(operator).sizes, "batch": ROWS}
    scenario = Scenario(tuple(sizes.items()), name="exact-products")
    draw = Draw(0)
    drawn = operator.ordinary(sizes, draw)
    drawn |= {
        arg.name: draw.choice(arg.shape_for(sizes), EXACT)
        for arg in operator.inputs
        if arg.is_floating and not arg.uniform
    }
    inputs = {arg.name: arg.cast(drawn[arg.name], subject.dtype).to(subject.torch_device) for arg in operator.inputs}

    def outputs(shift: int) -> dict[str, Tensor]:
        turned = tuple(_turned(arg, inputs[arg.name], shift) for arg in operator.inputs)
        with torch.no_grad():
            found = subject.outputs(Call(turned, ()), scenario)
        return {arg.name: _turned(arg, y, -shift) for arg, y in zip(operator.outputs, found, strict=True)}

    first = outputs(0)
    depends = {name: torch.zeros(y.shape, dtype=torch.bool, device=y.device) for name, y in first.items()}
    for shift in range(1, ROWS):
        for name, y in outputs(shift).items():
            depends[name] |= bits(y) != bits(first[name])
    count, total = sum(int(mask.sum()) for mask in depends.values()), sum(mask.numel() for mask in depends.values())
    return f"the bits of {count} of {total} elements depend on it, at values whose products are exact"


def _turned(arg: TensorArg, tensor: Tensor, shift: int) -> Tensor:
    return tensor if arg.row_dim is None else tensor.roll(shift, arg.row_dim)


PROPERTY = Property("determinism", "the same call gives the same bits", check, level=SAFE, outside=True)
