r"""LayerNorm: each row normalised to mean 0 and variance 1, then scaled and shifted, with PyTorch's signature.

    layer_norm(input, normalized_shape, weight=None, bias=None, eps=1e-5) -> output

`normalized_shape` gives the last dimensions of `input`, N elements in all. The dimensions before them, any number or
none, are the rows. For a row x of N elements, with weight w and bias b of shape `normalized_shape` (1 and 0 if they are
None):

    mean     = sum(x) / N
    variance = sum((x - mean)^2) / N                            biased; in two passes, since E[x^2] - mean^2 cancels
    rstd     = (variance + eps)^(-1/2)
    xhat     = (x - mean) rstd
    output   = xhat w + b

The vector-Jacobian product. Let g be the cotangent of output and h = g w that of xhat. With d mean/dx_i = 1/N and
d rstd/dx_i = -rstd^3 (x_i - mean) / N, the chain rule gives, with sums over the row:

    d_input  = rstd (h - sum(h)/N - xhat sum(h xhat)/N)
    d_weight = g xhat, summed over all rows
    d_bias   = g, summed over all rows

Precision. For float16 and bfloat16, mean, variance, rstd, xhat and the difference in d_input are computed in float32;
for the other dtypes, in the dtype itself. xhat and h may then be rounded to the dtype, as in layers that are composed
of operations. The last operations are rounded to the dtype: xhat w + b, g xhat, the product with rstd, and the sums
over rows. An implementation that computes its statistics in half precision is wrong. The variance may come from two
passes or from Welford's update, and xhat from (x - mean) rstd or from x rstd - mean rstd. In both cases the mean may be
rounded anew for each element.

Source: J. L. Ba, J. R. Kiros, G. E. Hinton, "Layer Normalization" (2016); torch.nn.functional.layer_norm for the
signature and the semantics. The derivation is ours; `tests/spec` checks it against autograd, central differences,
50-digit arithmetic and a symbolic derivation.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from spec.contract import FLOAT32, Case, Draw, Family, Invariant, Operator, Refusal, Sizes, TensorArg
from spec.rounding import apart, stored, wide

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
class _Form:
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

    def forward(self, input: Tensor, *affine: Tensor) -> tuple[Tensor]:
        """(output,), of the shape of the input."""
        weight, bias = self.affine(affine)
        output = stored(normalised(input, self.dims, self.eps)[0], input.dtype)
        output = output if weight is None else output * weight
        return ((output if bias is None else output + bias).to(input.dtype),)

    def intermediates(self, input: Tensor, *_: Tensor) -> dict[str, Tensor]:
        """rstd, with the normalised dimensions kept as 1, then xhat, of the shape of the input."""
        xhat, rstd = normalised(input, self.dims, self.eps)
        return {"rstd": rstd, "xhat": xhat}

    def vjp(self, inputs: tuple[Tensor, ...], cotangents: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        """Gradients of input and of the weight and bias that are passed, by the formulae of the module's docstring."""
        input, *affine = inputs
        weight, bias = self.affine(affine)
        (g,) = cotangents
        xhat, rstd = normalised(input, self.dims, self.eps)
        with wide(g, g if weight is None else g * weight) as (wide_g, h):
            difference = h - h.mean(self.dims, keepdim=True) - xhat * (h * xhat).mean(self.dims, keepdim=True)
        products = wide_g * stored(xhat, input.dtype)
        rows = tuple(range(input.dim() - self.normalized))
        gradients = [(rstd * difference).to(input.dtype)]
        if weight is not None:
            gradients.append(_summed(products, rows).to(input.dtype))
        if bias is not None:
            gradients.append(_summed(g, rows))
        return tuple(gradients)

    def call(self, function: Callable[..., Any], input: Tensor, *affine: Tensor) -> Any:
        """Call an implementation as a user writes this form."""
        weight, bias = self.affine(affine)
        return function(input, self.normalized_shape(input), weight, bias, *([self.eps] if self.passes_eps else []))

    def normalized_shape(self, input: Any) -> tuple[int, ...]:
        """The last dimensions of the input. For an argument without sizes (a wrong call), as many ones."""
        has_sizes = isinstance(input, Tensor) and not input.is_nested
        return tuple(input.shape[-self.normalized :]) if has_sizes else (1,) * self.normalized


def _summed(tensor: Tensor, dims: tuple[int, ...]) -> Tensor:
    return tensor.sum(dims) if dims else tensor


# Value families. An operator of varying rank has its rows reached through a view (rows, elements of a row).


def _ordinary(form: _Form, sizes: Sizes, draw: Draw) -> dict[str, Tensor]:
    """Rows of mean 0.5 and standard deviation 1; weights around 1, so that their sign and order matter."""
    drawn = {arg.name: draw.normal(arg.shape_for(sizes)) for arg in _inputs(form)}
    drawn["input"] += 0.5
    if "weight" in drawn:
        drawn["weight"] = 1 + drawn["weight"] / 2
    return drawn


def _as_rows(form: _Form, input: Tensor) -> Tensor:
    return input.view(-1, max(math.prod(input.shape[input.dim() - form.normalized :]), 1))


def _large_mean(form: _Form, sizes: Sizes, draw: Draw, dtype: torch.dtype) -> dict[str, Tensor]:
    # The squares are 16/eps times the variance: E[x^2] - mean^2 has no digit left, two passes lose none. The values are
    # in turn about 1 above and 1 below the mean, so that no row is nearly constant by chance.
    drawn = _ordinary(form, sizes, draw)
    rows = _as_rows(form, drawn["input"])
    rows /= 4
    rows[:, ::2] += 1.0
    rows[:, 1::2] -= 1.0
    rows += 4 * torch.finfo(dtype).eps ** -0.5
    return drawn


def _constant_rows(form: _Form, sizes: Sizes, draw: Draw, _: torch.dtype) -> dict[str, Tensor]:
    """Every other row is constant, a multiple of 1/16, so that the mean is exact and the variance 0."""
    drawn = _ordinary(form, sizes, draw)
    rows = _as_rows(form, drawn["input"])
    rows[::2] = (rows[::2, :1] * 16).round() / 16
    return drawn


def _small_variance(form: _Form, sizes: Sizes, draw: Draw, _: torch.dtype) -> dict[str, Tensor]:
    drawn = _ordinary(form, sizes, draw)
    drawn["input"] = (drawn["input"] - 0.5) * math.sqrt(form.eps)
    return drawn


def _large_values(form: _Form, sizes: Sizes, draw: Draw, _: torch.dtype) -> dict[str, Tensor]:
    drawn = _ordinary(form, sizes, draw)
    drawn["input"] *= 4096.0
    return drawn


def _non_finite(form: _Form, sizes: Sizes, draw: Draw, _: torch.dtype) -> dict[str, Tensor]:
    """NaN, inf and -inf, each in a row of its own; all other rows stay ordinary."""
    drawn = _ordinary(form, sizes, draw)
    rows = _as_rows(form, drawn["input"])
    for row, value in zip(range(rows.shape[0]), (float("nan"), float("inf"), -float("inf")), strict=False):
        rows[row, row % rows.shape[1]] = value
    return drawn


def _families(form: _Form) -> tuple[Family, ...]:
    def family(name: str, purpose: str, make: Callable[[_Form, Sizes, Draw, torch.dtype], dict[str, Tensor]]) -> Family:
        return Family(name, purpose, lambda sizes, draw, dtype: make(form, sizes, draw, dtype))

    return (
        family("large-mean", "a mean far above the standard deviation, where E[x^2] - mean^2 cancels", _large_mean),
        family("constant-rows", "rows of variance 0, where eps is all there is", _constant_rows),
        family("small-variance", "a variance of the size of eps", _small_variance),
        family("large-values", "values whose squares overflow float16", _large_values),
        family("non-finite", "inf and NaN in three rows, which must stay in their rows", _non_finite),
    )


# Invariants, which hold without a reference


def _zero_weight(form: _Form) -> Callable[[Sizes, Draw, torch.dtype], dict[str, Tensor]]:
    def make(sizes: Sizes, draw: Draw, _: torch.dtype) -> dict[str, Tensor]:
        drawn = _ordinary(form, sizes, draw)
        return {**drawn, "weight": torch.zeros_like(drawn["weight"])}

    return make


def _two_values(form: _Form) -> Callable[[Sizes, Draw, torch.dtype], dict[str, Tensor]]:
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


def _plus_and_minus(form: _Form) -> Callable[..., dict[str, Tensor]]:
    def outputs(input: Tensor, *affine: Tensor) -> dict[str, Tensor]:
        weight, bias = form.affine(affine)
        count = math.prod(input.shape[input.dim() - form.normalized :])
        share = (count // 2 * 2) / count  # in a row of odd length, one element is the mean
        xhat = (input - 2.0) / math.sqrt(share + form.eps)
        scaled = xhat if weight is None else xhat * weight
        return {"output": scaled if bias is None else scaled + bias}

    return outputs


def _invariants(form: _Form) -> tuple[Invariant, ...]:
    claim = "rows of 3 and 1 in turn are normalised to +-1/sqrt(1 + eps)"
    found = [Invariant("two-values", claim, _two_values(form), _plus_and_minus(form))]
    if form.weight and form.bias:
        claim = "a weight of 0 leaves the bias"
        found.append(Invariant("zero-weight", claim, _zero_weight(form), _bias_alone, bitwise=True))
    return tuple(found)


def _refusals(form: _Form) -> tuple[Refusal, ...]:
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


# Sizes


def _case(name: str, sizes: dict[str, int], origin: str, *tags: str) -> Case:
    return Case(name, sizes, origin, frozenset(tags))


def _rows(name: str, batch: int, features: int, origin: str, *tags: str) -> Case:
    return _case(name, {"batch": batch, "features": features}, origin, *tags)


_TAILS = (3, 4, 7, 8, 9, 31, 32, 33, 255, 256, 257, 1023, 1024, 1025, 4097)

_ROWS_CASES = (
    _rows("tokens", 64, 256, "a small transformer", "size", "benchmark"),
    _rows("middle", 4096, 1024, "a usual hidden size", "benchmark"),
    _rows("large", 8192, 8192, "more than the caches hold", "benchmark"),
    _rows("small", 3, 5, "fits gradcheck; both sizes prime to the vector width", "size", "small"),
    _rows("square", 4, 4, "batch and features equal, so that a transposed index fits", "size", "small"),
    _rows("one-row", 1, 6, "batch 1", "size", "small"),
    _rows("one-feature", 3, 1, "a row of one element: its variance is 0", "size"),
    _rows("no-rows", 0, 4, "the last, empty batch of a data loader", "size"),
    *(_rows(f"features-{size}", 3, size, "tail of a vector, a warp or a block", "size") for size in _TAILS),
    _rows("batch-70000", 70000, 3, "more rows than gridDim.y can hold (65535)", "size"),
    _rows("more-than-2^31", 2**20 + 3, 2100, "batch*features above 2^31 elements", "large"),
)


def _inputs(form: _Form) -> tuple[TensorArg, ...]:
    normalized = form.shape[len(form.shape) - form.normalized :]
    affine = [name for name, there in (("weight", form.weight), ("bias", form.bias)) if there]
    rest = (TensorArg(name, normalized, optional=True) for name in affine)
    return (TensorArg("input", form.shape, any_rank=True), *rest)


def _operator(name: str, form: _Form, cases: tuple[Case, ...], forms: tuple[Operator, ...] = ()) -> Operator:
    return Operator(
        name="layer_norm",
        form=name,
        forms=forms,
        inputs=_inputs(form),
        outputs=(TensorArg("output", form.shape),),
        autocast=FLOAT32,
        forward=form.forward,
        vjp=form.vjp,
        intermediates=form.intermediates,
        cases=cases,
        families=_families(form),
        invariants=_invariants(form),
        call=form.call,
        refusals=_refusals(form),
        # There is no product, so all is elementwise. Forward reads and writes a matrix, backward reads two, writes one.
        elementwise=(f"2*{'*'.join(form.shape)}", f"3*{'*'.join(form.shape)}"),
        saved=(
            *(TensorArg(name, form.shape) for name in ("deviation", "centred", *(("xhat",) if form.weight else ()))),
            *(TensorArg(name, form.shape[: len(form.shape) - form.normalized]) for name in ("mean", "rstd")),
        ),
    )


_TOKENS = _operator(
    "no-affine",
    _Form(("batch", "tokens", "features"), 1, weight=False, bias=False, eps=1e-12),
    (
        _case("small", {"batch": 2, "tokens": 3, "features": 5}, "rank 3, as most users have it", "size", "small"),
        _case("no-tokens", {"batch": 2, "tokens": 0, "features": 5}, "an empty sequence", "size"),
        _case("wide", {"batch": 2, "tokens": 3, "features": 260}, "a vector's tail in every row", "size"),
    ),
)
_WEIGHT_ONLY = _operator(
    "weight-only",
    _Form(("batch", "features"), 1, weight=True, bias=False, passes_eps=False),
    (_rows("small", 3, 5, "a weight without a bias", "size", "small"), _rows("wide", 3, 260, "a tail", "size")),
)
_IMAGES = _operator(
    "images",
    _Form(("batch", "channels", "height", "width"), 2, weight=True, bias=True, eps=0.5),
    (
        _case(
            "small",
            {"batch": 2, "channels": 3, "height": 4, "width": 5},
            "rank 4, two dimensions normalised",
            "size",
            "small",
        ),
        _case("wide", {"batch": 2, "channels": 3, "height": 16, "width": 17}, "rows of 272 elements", "size"),
    ),
)
_VECTOR = _operator(
    "vector",
    _Form(("features",), 1, weight=False, bias=True, passes_eps=False),
    (
        _case("small", {"features": 5}, "rank 1: the whole input is one row", "size", "small"),
        _case("wide", {"features": 1030}, "one row, longer than a block", "size"),
    ),
)

OPERATOR = _operator(
    "rows",
    _Form(("batch", "features"), 1, weight=True, bias=True),
    _ROWS_CASES,
    forms=(_TOKENS, _WEIGHT_ONLY, _IMAGES, _VECTOR),
)
