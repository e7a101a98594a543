"""LayerNorm, right but different: each control must pass every property that `gives_up` does not name."""

import math
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from backends._python.layer_norm import check_layer_norm_arguments
from tests.zoo.honest.layer_norm import Dims, Norm
from tests.zoo.registry import OLD_STYLE, control

Optional = Tensor | None


@control(gives_up=OLD_STYLE)
class Honest(Norm):
    """The honest normalisation, the base of every fault."""


@control
def torchs_own(
    input: Tensor, normalized_shape: Sequence[int], weight: Optional = None, bias: Optional = None, eps: float = 1e-5
) -> Tensor:
    """torch.nn.functional.layer_norm, in float32 for half types.

    In bfloat16 itself, on the CPU, its gradient of the weight has a relative error of 1: its sums are in bfloat16.
    """
    check_layer_norm_arguments(input, normalized_shape, weight, bias)
    wide = [t if t is None else _wide(t) for t in (input, weight, bias)]
    output = F.layer_norm(wide[0], tuple(normalized_shape), wide[1], wide[2], eps)  # type: ignore[arg-type]
    return output.to(input.dtype)


def _wide(input: Tensor) -> Tensor:
    return input.to(torch.promote_types(input.dtype, torch.float32))


def _affine(xhat: Tensor, weight: Optional, bias: Optional, dtype: torch.dtype) -> Tensor:
    scaled = xhat if weight is None else xhat * weight
    return (scaled if bias is None else scaled + bias).to(dtype)


@control
def deviation_divided_by(
    input: Tensor, normalized_shape: Sequence[int], weight: Optional = None, bias: Optional = None, eps: float = 1e-5
) -> Tensor:
    """Divides by the standard deviation, and computes xhat as a difference of two quotients."""
    check_layer_norm_arguments(input, normalized_shape, weight, bias)
    dims = tuple(range(-len(normalized_shape), 0))
    x = _wide(input)
    mean = x.mean(dims, keepdim=True)
    deviation = torch.sqrt((x - mean).square().sum(dims, keepdim=True) / max(math.prod(normalized_shape), 1) + eps)
    return _affine(x / deviation - mean / deviation, weight, bias, input.dtype)


_SPLITS = "its recursion stops at 16 elements, so each number of elements is another graph"


@control(gives_up={**OLD_STYLE, "compile": _SPLITS, "export": _SPLITS})
class Welford(Norm):
    """Mean and variance by Welford's update, 16 elements at a time, merged in pairs by Chan's formula."""

    def mean(self, x: Tensor, dims: Dims) -> Tensor:
        return self._statistics(x, dims)[0]

    def variance(self, x: Tensor, mean: Tensor, dims: Dims) -> Tensor:
        return self._statistics(x, dims)[1]

    def _statistics(self, x: Tensor, dims: Dims) -> tuple[Tensor, Tensor]:
        rows = x.flatten(x.dim() - len(dims))
        mean, m2 = self._merged(rows)
        shape = (*mean.shape, *(1 for _ in dims))
        return mean.reshape(shape), (m2 / rows.shape[-1]).reshape(shape)

    def _merged(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """(mean, sum of squared deviations) over the last dimension."""
        count = rows.shape[-1]
        if not count:  # a contract derived from a reference asks for such rows if the reference accepts them
            return rows.sum(-1), rows.sum(-1)
        if count <= 16:
            mean, m2 = rows[..., 0], torch.zeros_like(rows[..., 0])
            for k in range(1, count):
                delta = rows[..., k] - mean
                mean = mean + delta / (k + 1)
                m2 = m2 + delta * (rows[..., k] - mean)
            return mean, m2
        half = count // 2
        (left, left_m2), (right, right_m2) = self._merged(rows[..., :half]), self._merged(rows[..., half:])
        difference, share = right - left, (count - half) / count
        return left + difference * share, left_m2 + right_m2 + difference.square() * half * share


@control
def everything_in_float64(
    input: Tensor, normalized_shape: Sequence[int], weight: Optional = None, bias: Optional = None, eps: float = 1e-5
) -> Tensor:
    """Computed in double precision and rounded once: more accuracy than required is not wrong."""
    check_layer_norm_arguments(input, normalized_shape, weight, bias)
    wide = [t if t is None else t.double() for t in (input, weight, bias)]
    output = F.layer_norm(wide[0], tuple(normalized_shape), wide[1], wide[2], eps)  # type: ignore[arg-type]
    return output.to(input.dtype)


@control
def rounded_before_affine(
    input: Tensor, normalized_shape: Sequence[int], weight: Optional = None, bias: Optional = None, eps: float = 1e-5
) -> Tensor:
    """xhat is rounded to the dtype before it is scaled, as in composed half-precision layers."""
    check_layer_norm_arguments(input, normalized_shape, weight, bias)
    xhat = F.layer_norm(_wide(input), tuple(normalized_shape), None, None, eps).to(input.dtype)
    return _affine(xhat, weight, bias, input.dtype)


@control(gives_up=OLD_STYLE)
class SumsOverHalves(Norm):
    """A row's mean is the weighted mean of its two halves: another order of summation."""

    def mean(self, x: Tensor, dims: Dims) -> Tensor:
        rows = x.flatten(x.dim() - len(dims))
        half = rows.shape[-1] // 2
        total = rows[..., :half].sum(-1) + rows[..., half:].sum(-1)
        return (total / rows.shape[-1]).reshape(*total.shape, *(1 for _ in dims))


@control(gives_up=OLD_STYLE)
class TimesARoundedReciprocal(Norm):
    """Sums are multiplied by 1/N, rounded, as compilers divide by a constant: all means err in the same direction."""

    def mean(self, x: Tensor, dims: Dims) -> Tensor:
        return self._share(x.sum(dims, keepdim=True), x, dims)

    def variance(self, x: Tensor, mean: Tensor, dims: Dims) -> Tensor:
        return self._share((x - mean).square().sum(dims, keepdim=True), x, dims)

    def _share(self, total: Tensor, x: Tensor, dims: Dims) -> Tensor:
        count = math.prod(x.shape[dim] for dim in dims)
        return total * torch.tensor(1 / max(count, 1), dtype=x.dtype, device=x.device)


@control(gives_up=OLD_STYLE)
class ReciprocalRootOneUnitHigh(Norm):
    """1/sqrt is one unit in the last place too large, half of CUDA's allowed error: the same in all constant rows."""

    def rstd(self, variance: Tensor, eps: float) -> Tensor:
        return super().rstd(variance, eps) * (1 + torch.finfo(variance.dtype).eps)
