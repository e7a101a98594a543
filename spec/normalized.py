"""Normalised rows, and how LayerNorm is called: which dimensions, which tensors, and which calls are wrong."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from spec.blocks import apart, wide
from spec.contract import Refusal, TensorArg

#: The default of PyTorch's signature.
EPS = 1e-5


def normalised(input: Tensor, dims: tuple[int, ...], eps: float) -> tuple[Tensor, Tensor]:
    """(xhat, rstd): the rows normalised over `dims`, and 1/sqrt(variance + eps) with those dimensions kept as 1."""
    with wide(input) as (x,):
        mean = x.mean(dims, keepdim=True)
        deviation = x - _for_each(mean, x, 4) - _beside(mean, x)
        rstd = torch.rsqrt((deviation * deviation).mean(dims, keepdim=True) + eps)
        return (x - _for_each(mean, x, 2)) * rstd, rstd


def _for_each(mean: Tensor, x: Tensor, roundings: int) -> Tensor:
    """The mean for each element of x: the same number, but under rounding up to `roundings` roundings away from it.

    xhat needs two, because x rstd - mean rstd has two roundings. The variance needs four: Welford's running mean
    carries its roundings from element to element, so they do not average out as independent ones would.
    """
    each = mean.expand_as(x)
    with apart(x):
        return each + roundings * (each * 1 - each)


def _beside(mean: Tensor, x: Tensor) -> Tensor:
    """0; under rounding, an error of the mean, of one sign for all x above it, and of the other for all below.

    Kernels merge the variances of lanes, each about a mean of its own that is rounded (Chan, Golub and LeVeque 1983).
    Where the lanes hold the large and the small x, as vectors of eight do when the signs of x - mean alternate, the
    variance errs by 2 |x - mean| roundings of the mean, and no number of elements averages that away.
    """
    x, mean = x.detach(), mean.detach()
    return torch.sign(x - mean) * (mean * 1 - mean)


@dataclass(frozen=True)
class Form:
    """One way to call the operator: which dimensions are normalised, and whether weight and bias are passed."""

    shape: tuple[str, ...]
    normalized: int
    weight: bool
    bias: bool
    eps: float = EPS
    #: Whether eps is passed; if not, the default must be the right one.
    passes_eps: bool = True

    @property
    def dims(self) -> tuple[int, ...]:
        """The normalised dimensions, from the end."""
        return tuple(range(-self.normalized, 0))

    def affine(self, tensors: Sequence[Tensor]) -> tuple[Tensor | None, Tensor | None]:
        """(weight, bias) out of the tensors that follow the input. Raises TypeError for a wrong number of them."""
        wanted = self.weight + self.bias
        if len(tensors) != wanted:
            names = " and ".join(name for name in ("weight", "bias") if getattr(self, name)) or "nothing"
            raise TypeError(f"layer_norm: {len(tensors)} tensors followed input, but {wanted} should: {names}")
        rest = iter(tensors)
        return (next(rest) if self.weight else None), (next(rest) if self.bias else None)

    def call(self, function: Callable[..., Any], input: Tensor, *affine: Tensor) -> Any:
        """Call an implementation as a user writes this form."""
        weight, bias = self.affine(affine)
        return function(input, self.normalized_shape(input), weight, bias, *([self.eps] if self.passes_eps else []))

    def normalized_shape(self, input: Any) -> tuple[int, ...]:
        """The last dimensions of the input. For an argument without sizes (a wrong call), as many ones."""
        has_sizes = isinstance(input, Tensor) and not input.is_nested
        return tuple(input.shape[-self.normalized :]) if has_sizes else (1,) * self.normalized

    def inputs(self) -> tuple[TensorArg, ...]:
        """The tensors that are passed."""
        normalized = self.shape[len(self.shape) - self.normalized :]
        affine = [name for name, there in (("weight", self.weight), ("bias", self.bias)) if there]
        rest = (TensorArg(name, normalized, optional=True) for name in affine)
        return (TensorArg("input", self.shape, any_rank=True), *rest)


def refusals(form: Form) -> tuple[Refusal, ...]:
    """Calls with a normalized_shape that does not fit the input."""

    def with_shape(change: Callable[[tuple[int, ...]], tuple[int, ...]]) -> Callable[..., Any]:
        def call(function: Callable[..., Any], input: Tensor, *affine: Tensor) -> Any:
            weight, bias = form.affine(affine)
            return function(input, change(form.normalized_shape(input)), weight, bias, form.eps)

        return call

    name = "normalized_shape"
    return (
        Refusal("normalized_shape one too long", name, with_shape(lambda s: (*s[:-1], s[-1] + 1)), (r"\d",)),
        Refusal("normalized_shape with a dimension that the input lacks", name, with_shape(lambda s: (7, 7, 7, 7, *s))),
        Refusal("normalized_shape of no dimension", name, with_shape(lambda _: ())),
    )
