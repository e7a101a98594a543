"""Values of LLTM: pre-activations that are chosen exactly, cells and gates at their limits, and closed forms."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from spec.contract import Draw, Family, Invariant, Sizes, TensorArg
from spec.rowwise import Drawn, changed
from spec.rowwise import families as of_changes


def _solved_for(gates: Tensor, sizes: Sizes, draw: Draw) -> dict[str, Tensor]:
    """Inputs whose pre-activations are exactly the rows of `gates`, (state_size + input_features, 3*state_size).

    Row b of X is the unit vector b modulo its length, so each product has one term and no rounding. Row b of the batch
    then gets row b (modulo the number of rows) of `gates`.
    """
    batch, state_size, features = sizes["batch"], sizes["state_size"], sizes["input_features"]
    width = state_size + features
    X = torch.eye(width, dtype=torch.float64).repeat(-(-batch // max(width, 1)), 1)[:batch].reshape(batch, width)
    return {
        "input": X[:, state_size:].contiguous(),
        "weights": gates.t().contiguous(),
        "bias": torch.zeros(3 * state_size, dtype=torch.float64),
        "old_h": X[:, :state_size].contiguous(),
        "old_cell": draw.normal((batch, state_size)),
    }


def _chosen(values: tuple[float, ...], sizes: Sizes, draw: Draw) -> dict[str, Tensor]:
    shape = (sizes["state_size"] + sizes["input_features"], 3 * sizes["state_size"])
    return _solved_for(draw.choice(shape, values), sizes, draw)


def _zero_gates(sizes: Sizes, draw: Draw, _: torch.dtype) -> dict[str, Tensor]:
    return _chosen((0.0,), sizes, draw)


def _tiny_gates(sizes: Sizes, draw: Draw, dtype: torch.dtype) -> dict[str, Tensor]:
    eps, tiny = torch.finfo(dtype).eps, torch.finfo(dtype).tiny
    return _chosen((-eps / 8, -eps / 2, -eps, -tiny, tiny, eps / 8, 0.0, -0.0), sizes, draw)


def overflowing(dtype: torch.dtype) -> tuple[float, ...]:
    """Pre-activations beyond the overflow of exp: from 89 on in float32 and bfloat16, 12 in float16, 710 in float64."""
    beyond = float(torch.tensor(torch.finfo(dtype).max, dtype=torch.float64).log().ceil())
    return beyond, 2 * beyond, -beyond, -2 * beyond, 1.0


def _overflowing_exp(sizes: Sizes, draw: Draw, dtype: torch.dtype) -> Drawn:
    return _chosen(overflowing(dtype), sizes, draw)


def _denormals(drawn: Drawn, draw: Draw, dtype: torch.dtype) -> None:
    quarter = torch.finfo(dtype).tiny / 4
    drawn["old_cell"] = draw.choice(tuple(drawn["old_cell"].shape), (quarter, -quarter, 0.0))
    drawn["input"] = draw.choice(tuple(drawn["input"].shape), (quarter, -quarter, 1.0))


def _huge_cells(drawn: Drawn, draw: Draw, _: torch.dtype) -> None:
    drawn["old_cell"] = draw.choice(tuple(drawn["old_cell"].shape), (1e4, -1e4, 30.0, -30.0, 0.0))


def close_gate(drawn: Drawn, _: Draw, dtype: torch.dtype) -> None:
    """The bias of the input gate is so low that the gate is 0 in the dtype."""
    gate = len(drawn["bias"]) // 3
    drawn["bias"][:gate] = -2 * float(torch.tensor(torch.finfo(dtype).max, dtype=torch.float64).log())


def negative_gates(drawn: Drawn, draw: Draw, _: torch.dtype) -> None:
    """All pre-activations are negative, and none so far out that sigmoid or elu is flat: a small product and a bias."""
    drawn["weights"] /= 8
    drawn["bias"] = draw.uniform(tuple(drawn["bias"].shape), -3.0, -1.5)


def zero_parameters(drawn: Drawn, _draw: Draw, _dtype: torch.dtype) -> None:
    """Weights and bias are 0."""
    for name in ("weights", "bias"):
        drawn[name] = torch.zeros_like(drawn[name])


def _non_finite(drawn: Drawn, _: Draw, dtype: torch.dtype) -> None:
    """NaN, +inf and -inf in the first rows of old_cell and input; all other rows stay ordinary.

    In bfloat16 the input has no -inf. With AMX, a oneDNN product of more than 16 rows in bfloat16 multiplies the tail
    of each row by 0 in the next one (torch 2.13, 17x34 by 34x9). The row of +inf would become NaN; the row of NaN is
    NaN anyway.
    """
    for row, value in zip(range(len(drawn["input"])), (float("nan"), float("inf"), -float("inf")), strict=False):
        for name in ("old_cell", "input"):
            spared = name == "input" and dtype == torch.bfloat16 and value == -float("inf")
            if drawn[name].shape[1] and not spared:
                drawn[name][row, row % drawn[name].shape[1]] = value


def families(inputs: Sequence[TensorArg]) -> tuple[Family, ...]:
    """The value families."""
    return (
        Family("zero-gates", "every pre-activation exactly 0, where elu has its kink", _zero_gates),
        Family("tiny-gates", "pre-activations of -eps/8, smallest normals, negative zero", _tiny_gates),
        Family("overflowing-exp", "pre-activations beyond the overflow of exp", _overflowing_exp),
        *of_changes(
            inputs,
            {
                "denormals": ("inputs below the smallest normal number", _denormals),
                "huge-cells": ("cells of 1e4, where tanh is flat", _huge_cells),
                "closed-gate": ("an input gate that is 0 to the last bit", close_gate),
                "negative-gates": ("pre-activations that are all negative: no other branch is taken", negative_gates),
                "non-finite": ("inf and NaN in three rows, which must stay in their rows", _non_finite),
            },
        ),
    )


def invariants(inputs: Sequence[TensorArg]) -> tuple[Invariant, ...]:
    """What a closed gate and zero parameters make of the cell."""

    def kept(*inputs: Tensor) -> dict[str, Tensor]:
        return {"new_cell": inputs[4]}

    def half_tanh(*inputs: Tensor) -> dict[str, Tensor]:
        return {"new_h": torch.tanh(inputs[4]) / 2, "new_cell": inputs[4]}

    closed, zero = changed(inputs, close_gate), changed(inputs, zero_parameters)
    of_zero = "zero weights and bias give new_cell = old_cell and new_h = tanh(old_cell)/2"
    return (
        Invariant("closed-input-gate", "an input gate of 0 leaves the cell as it was", closed, kept, bitwise=True),
        Invariant("zero-parameters", of_zero, zero, half_tanh),
    )
