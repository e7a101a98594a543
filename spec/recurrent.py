"""What contracts of PyTorch's recurrent cells share: arguments, sizes, and values that are solved for.

A cell takes an input, one or two states and, for each gate, two rows of weights and two biases for each element of the
state. The names and their order are those of torch.lstm_cell and torch.gru_cell:

    cell(input, old_h, ..., w_ih, w_hh, b_ih=None, b_hh=None)

`input` is (batch, input_features), a state (batch, state_size), `w_ih` (gates*state_size, input_features), `w_hh`
(gates*state_size, state_size), each bias (gates*state_size,). Either both biases are passed or none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from spec.contract import LOWER, Case, Draw, Invariant, Operator, Refusal, Sizes, TensorArg
from spec.forms import Formulas
from spec.rowwise import Change, Drawn, case, families, ordinary

#: Pre-activations at which sigmoid and tanh have their limits to the last bit, in every dtype.
FAR = 10000.0


def affine(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """x @ weight.T + bias."""
    product = x @ weight.t()
    return product if bias is None else product + bias


def solved_for(drawn: Drawn, gates: Tensor) -> Drawn:
    """The values changed so that the pre-activations of row b are row b, modulo their number, of `gates`.

    `gates` is (input_features, gates*state_size). Row b of the input is the unit vector b modulo its length, so that
    each product has one term and no rounding; the state's weights and the biases are 0.
    """
    batch, features = drawn["input"].shape
    units = torch.eye(features, dtype=torch.float64).repeat(-(-batch // max(features, 1)), 1)[:batch]
    zeros = {name: drawn[name] * 0 for name in ("w_hh", "b_ih", "b_hh") if name in drawn}
    return drawn | {"input": units.reshape(batch, features), "w_ih": gates.t().contiguous()} | zeros


def with_gates(drawn: Drawn, values: Sequence[float]) -> Drawn:
    """Every pre-activation of a gate solved for: one value for each gate, in their order."""
    features, state_size = drawn["input"].shape[1], drawn["old_h"].shape[1]
    row = torch.tensor(values, dtype=torch.float64).repeat_interleave(state_size)
    return solved_for(drawn, row.expand(features, -1))


def chosen(drawn: Drawn, draw: Draw, values: tuple[float, ...]) -> Drawn:
    """Every pre-activation is one of `values`."""
    return solved_for(drawn, draw.choice(tuple(drawn["w_ih"].t().shape), values))


def _changes(states: tuple[str, ...], spared: str) -> dict[str, tuple[str, Change]]:
    def tiny(drawn: Drawn, draw: Draw, dtype: torch.dtype) -> None:
        eps, least = torch.finfo(dtype).eps, torch.finfo(dtype).tiny
        drawn.update(chosen(drawn, draw, (-eps / 8, -eps / 2, -eps, -least, least, eps / 8, 0.0, -0.0)))

    def overflowing(drawn: Drawn, draw: Draw, dtype: torch.dtype) -> None:
        # The first integer where exp overflows: 89 in float32 and bfloat16, 12 in float16, 710 in float64.
        beyond = float(torch.tensor(torch.finfo(dtype).max, dtype=torch.float64).log().ceil())
        drawn.update(chosen(drawn, draw, (beyond, 2 * beyond, -beyond, -2 * beyond, 1.0)))

    def saturated(drawn: Drawn, draw: Draw, _dtype: torch.dtype) -> None:
        drawn.update(chosen(drawn, draw, (-30.0, -8.0, -4.0, 4.0, 8.0, 30.0)))

    def opposite(drawn: Drawn, _draw: Draw, _dtype: torch.dtype) -> None:
        if "b_ih" in drawn:
            # Not larger: a product that begins with the bias rounds each of its sums to the bias's unit.
            drawn["b_ih"] += 2.0
            drawn["b_hh"] -= 2.0

    def denormals(drawn: Drawn, draw: Draw, dtype: torch.dtype) -> None:
        quarter = torch.finfo(dtype).tiny / 4
        for name in ("input", *states):
            drawn[name] = draw.choice(tuple(drawn[name].shape), (quarter, -quarter, 1.0))

    def large(drawn: Drawn, draw: Draw, _dtype: torch.dtype) -> None:
        drawn.update(solved_for(drawn, draw.normal(tuple(drawn["w_ih"].t().shape))))
        for name in states:
            drawn[name] = draw.choice(tuple(drawn[name].shape), (1e4, -1e4, 30.0, -30.0, 0.0))

    def non_finite(drawn: Drawn, _draw: Draw, dtype: torch.dtype) -> None:
        # No -inf in bfloat16: a product may multiply the tail of a row by 0 in the next one, see `spec.lltm`.
        for row, value in zip(range(len(drawn["input"])), (float("nan"), float("inf"), -float("inf")), strict=False):
            for name in {"input", spared} & set(drawn):
                rows = drawn[name]
                if rows.shape[1] and not (name == "input" and dtype == torch.bfloat16 and value == -float("inf")):
                    rows[row, row % rows.shape[1]] = value

    return {
        "tiny-gates": ("pre-activations of -eps/8, smallest normals, negative zero", tiny),
        "overflowing-exp": ("pre-activations beyond the overflow of exp", overflowing),
        "saturated": ("pre-activations where gates are nearly open or nearly closed", saturated),
        "opposite-biases": ("biases of 2 and -2, which cancel", opposite),
        "denormals": ("inputs and states below the smallest normal number", denormals),
        "large-states": ("states of 1e4, which a gate passes on", large),
        "non-finite": ("inf and NaN in three rows, which must stay in their rows", non_finite),
    }


def with_zero_parameters(drawn: Drawn) -> Drawn:
    """All weights and biases 0."""
    return {name: value * 0 if name[:2] in ("w_", "b_") else value for name, value in drawn.items()}


def invariant(
    inputs: Sequence[TensorArg], name: str, claim: str, change: Callable[[Drawn], Drawn], outputs: Callable[..., Any]
) -> Invariant:
    """An invariant at ordinary values with `change` applied; `outputs` takes the inputs by name."""

    def make(sizes: Sizes, draw: Draw, _: torch.dtype) -> Drawn:
        return change(ordinary(inputs, sizes, draw))

    def named(*tensors: Tensor) -> Any:
        return outputs(**dict(zip((arg.name for arg in inputs), tensors, strict=True)))

    return Invariant(name, claim, make, named)


def _case(name: str, batch: int, features: int, state: int, origin: str, *tags: str) -> Case:
    return case(name, {"batch": batch, "input_features": features, "state_size": state}, origin, *tags)


model = _case

_FEW = (
    _case("usual", 16, 32, 64, "a small network", "size", "benchmark"),
    _case("small", 3, 4, 5, "fits gradcheck; every size odd or prime to the vector width", "size", "small"),
    _case("square", 4, 4, 4, "batch, features and state equal, so that a transposed index fits", "size", "small"),
    _case("no-rows", 0, 3, 4, "the last, empty batch of a data loader", "size"),
    _case("tails", 17, 33, 65, "tails of tiles in all sizes", "size"),
)


def _cases(gates: int) -> tuple[Case, ...]:
    return (
        *_FEW,
        _case("one-row", 1, 3, 8, "batch 1", "size", "small"),
        _case("one-everything", 1, 1, 1, "the least that is not empty", "size", "small"),
        _case("no-features", 3, 0, 6, "recurrence without an input", "size"),
        *(_case(f"state-{n}", 3, 5, n, "tail of a vector, a warp or a block", "size") for n in (3, 7, 31, 32, 33, 257)),
        *(_case(f"state-{n}", 3, 5, n, "around the largest block", "size", "block") for n in (1023, 1024, 1025)),
        _case("batch-70000", 70000, 2, 3, "more rows than gridDim.y can hold (65535)", "size", "grid"),
        _case("more-than-2^31", 2**20 + 3, 0, 2160 // gates, "pre-activations of more than 2^31 elements", "large"),
        _case("state-of-more-than-2^31", 2**20 + 3, 0, 2100, "a state of more than 2^31 elements", "largest"),
        _case("large", 4096, 1024, 1024, "products that fill a GPU", "benchmark"),
    )


def contract(
    law: Formulas,
    gates: tuple[str, ...],
    states: tuple[str, ...],
    outputs: tuple[str, ...],
    models: tuple[Case, ...],
    invariants: Callable[[Sequence[TensorArg]], tuple[Invariant, ...]],
    elementwise: tuple[int, int],
    saved: tuple[TensorArg, ...],
) -> Operator:
    """The contract, with a form without biases. `elementwise` counts states; the last state meets no product if there
    are two.
    """
    count, size = len(gates), ("batch", "state_size")
    scale, blocks = "(state_size + input_features + 1)**-0.5", (tuple((gate, "state_size") for gate in gates),)
    weights = tuple(
        TensorArg(name, (f"{count}*state_size", width), scale=scale, blocks=blocks)
        for name, width in (("w_ih", "input_features"), ("w_hh", "state_size"))
    )
    biases = tuple(
        TensorArg(name, (f"{count}*state_size",), scale="0.5", blocks=blocks, optional=True)
        for name in ("b_ih", "b_hh")
    )
    flops = f"{2 * count}*batch*state_size*(state_size + input_features)"

    def form(name: str, rest: tuple[TensorArg, ...], cases: tuple[Case, ...], *forms: Operator) -> Operator:
        inputs = (TensorArg("input", ("batch", "input_features")), *(TensorArg(each, size) for each in states), *rest)
        alone = Refusal(
            "b_hh without b_ih",
            "b_ih",
            lambda function, *tensors: function(*tensors[: len(states) + 3], None, tensors[-1]),
        )
        return law.in_form(
            name,
            inputs,
            outputs=tuple(TensorArg(each, size) for each in outputs),
            autocast=LOWER,
            forms=forms,
            cases=cases,
            families=families(inputs, _changes(states, states[-1] if len(states) > 1 else "")),
            invariants=invariants(inputs),
            recurrent=tuple(zip(outputs, states, strict=True)),
            refusals=(alone,) if len(rest) > 2 else (),
            flops=(flops, f"2*{flops}"),
            elementwise=tuple(f"{each}*batch*state_size" for each in elementwise),
            saved=saved,
        )

    return form("biases", (*weights, *biases), (*_cases(count), *models), form("no-biases", weights, _FEW))
