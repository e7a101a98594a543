"""Values of LayerNorm: rows at the limits of the variance, and rows whose mean and variance are known."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from spec.contract import Draw, Family, Invariant, Sizes
from spec.normalized import Form


def _ordinary(form: Form, sizes: Sizes, draw: Draw) -> dict[str, Tensor]:
    """Rows of mean 0.5 and standard deviation 1; weights around 1, so that their sign and order matter."""
    drawn = {arg.name: draw.normal(arg.shape_for(sizes)) for arg in form.inputs()}
    drawn["input"] += 0.5
    if "weight" in drawn:
        drawn["weight"] = 1 + drawn["weight"] / 2
    return drawn


def _as_rows(form: Form, input: Tensor) -> Tensor:
    return input.view(-1, max(math.prod(input.shape[input.dim() - form.normalized :]), 1))


def _large_mean(form: Form, sizes: Sizes, draw: Draw, dtype: torch.dtype) -> dict[str, Tensor]:
    # The squares are 16/eps times the variance: E[x^2] - mean^2 has no digit left, two passes lose none. The values are
    # in turn about 1 above and 1 below the mean, so that no row is nearly constant by chance.
    drawn = _ordinary(form, sizes, draw)
    rows = _as_rows(form, drawn["input"])
    rows /= 4
    rows[:, ::2] += 1.0
    rows[:, 1::2] -= 1.0
    rows += 4 * torch.finfo(dtype).eps ** -0.5
    return drawn


def _constant_rows(form: Form, sizes: Sizes, draw: Draw, _: torch.dtype) -> dict[str, Tensor]:
    """Every other row is constant, a multiple of 1/16, so that the mean is exact and the variance 0."""
    drawn = _ordinary(form, sizes, draw)
    rows = _as_rows(form, drawn["input"])
    rows[::2] = (rows[::2, :1] * 16).round() / 16
    return drawn


def _small_variance(form: Form, sizes: Sizes, draw: Draw, _: torch.dtype) -> dict[str, Tensor]:
    drawn = _ordinary(form, sizes, draw)
    drawn["input"] = (drawn["input"] - 0.5) * math.sqrt(form.eps)
    return drawn


def _large_values(form: Form, sizes: Sizes, draw: Draw, _: torch.dtype) -> dict[str, Tensor]:
    drawn = _ordinary(form, sizes, draw)
    drawn["input"] *= 4096.0
    return drawn


def _non_finite(form: Form, sizes: Sizes, draw: Draw, _: torch.dtype) -> dict[str, Tensor]:
    """NaN, inf and -inf, each in a row of its own; all other rows stay ordinary."""
    drawn = _ordinary(form, sizes, draw)
    rows = _as_rows(form, drawn["input"])
    for row, value in zip(range(rows.shape[0]), (float("nan"), float("inf"), -float("inf")), strict=False):
        rows[row, row % rows.shape[1]] = value
    return drawn


def families(form: Form) -> tuple[Family, ...]:
    """The value families. Rows are reached through a view (rows, elements of a row)."""

    def family(name: str, purpose: str, make: Callable[[Form, Sizes, Draw, torch.dtype], dict[str, Tensor]]) -> Family:
        return Family(name, purpose, lambda sizes, draw, dtype: make(form, sizes, draw, dtype))

    return (
        family("large-mean", "a mean far above the standard deviation, where E[x^2] - mean^2 cancels", _large_mean),
        family("constant-rows", "rows of variance 0, where eps is all there is", _constant_rows),
        family("small-variance", "a variance of the size of eps", _small_variance),
        family("large-values", "values whose squares overflow float16", _large_values),
        family("non-finite", "inf and NaN in three rows, which must stay in their rows", _non_finite),
    )


def _zero_weight(form: Form) -> Callable[[Sizes, Draw, torch.dtype], dict[str, Tensor]]:
    def make(sizes: Sizes, draw: Draw, _: torch.dtype) -> dict[str, Tensor]:
        drawn = _ordinary(form, sizes, draw)
        return {**drawn, "weight": torch.zeros_like(drawn["weight"])}

    return make


def _two_values(form: Form) -> Callable[[Sizes, Draw, torch.dtype], dict[str, Tensor]]:
    """Rows of an even number of elements, half of them 3 and half 1, in turn: mean 2, variance 1."""

    def make(sizes: Sizes, draw: Draw, _: torch.dtype) -> dict[str, Tensor]:
        drawn = _ordinary(form, sizes, draw)
        rows = _as_rows(form, drawn["input"])
        rows[:] = 2.0
        rows[:, 0 : rows.shape[1] // 2 * 2 : 2] = 3.0
        rows[:, 1::2] = 1.0
        return drawn

    return make


def _bias_alone(input: Tensor, weight: Tensor, bias: Tensor) -> dict[str, Tensor]:
    del weight
    return {"output": bias.expand_as(input)}


def _plus_and_minus(form: Form) -> Callable[..., dict[str, Tensor]]:
    def outputs(input: Tensor, *affine: Tensor) -> dict[str, Tensor]:
        weight, bias = form.affine(affine)
        count = math.prod(input.shape[input.dim() - form.normalized :])
        share = (count // 2 * 2) / count  # in a row of odd length, one element is the mean
        xhat = (input - 2.0) / math.sqrt(share + form.eps)
        scaled = xhat if weight is None else xhat * weight
        return {"output": scaled if bias is None else scaled + bias}

    return outputs


def invariants(form: Form) -> tuple[Invariant, ...]:
    """Rows of 3 and 1, and a weight of 0 where there is a bias."""
    claim = "rows of 3 and 1 in turn are normalised to +-1/sqrt(1 + eps)"
    found = [Invariant("two-values", claim, _two_values(form), _plus_and_minus(form))]
    if form.weight and form.bias:
        claim = "a weight of 0 leaves the bias"
        found.append(Invariant("zero-weight", claim, _zero_weight(form), _bias_alone, bitwise=True))
    return tuple(found)
