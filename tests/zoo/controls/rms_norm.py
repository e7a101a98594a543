"""RMSNorm, right but different: each control must pass every property that `gives_up` does not name."""

import torch
import torch.nn.functional as F
from torch import Tensor

from backends._python.rows import check_rms_norm_arguments
from tests.zoo.honest.rms_norm import RootMeanSquare
from tests.zoo.registry import OLD_STYLE, control

Optional = Tensor | None
Result = Tensor | tuple[Tensor, Tensor]


def _wide(input: Tensor) -> Tensor:
    return input.to(torch.promote_types(input.dtype, torch.float32))


@control(gives_up=OLD_STYLE)
class Honest(RootMeanSquare):
    """The honest normalisation, the base of every fault."""


@control
def divided_by_the_root(input: Tensor, weight: Optional = None, residual: Optional = None, eps: float = 1e-6) -> Result:
    """Divides by the root of the mean square, which is a sum times a rounded 1/N."""
    check_rms_norm_arguments(input, weight, residual)
    total = input if residual is None else input + residual
    x = _wide(total)
    root = torch.sqrt(x.square().sum(-1, keepdim=True) * (1 / max(x.shape[-1], 1)) + eps)
    output = (x / root if weight is None else x / root * weight).to(input.dtype)
    return output if residual is None else (output, total)


@control
def rounded_before_the_weight(
    input: Tensor, weight: Optional = None, residual: Optional = None, eps: float = 1e-6
) -> Result:
    """xhat is rounded to the dtype before it is scaled, as transformers' LlamaRMSNorm does."""
    check_rms_norm_arguments(input, weight, residual)
    total = input if residual is None else input + residual
    x = _wide(total)
    xhat = (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps)).to(input.dtype)
    output = xhat if weight is None else weight * xhat
    return output if residual is None else (output, total)


@control
def sum_in_float32(input: Tensor, weight: Optional = None, residual: Optional = None, eps: float = 1e-6) -> Result:
    """The row is normalised before its sum with the residual is rounded, as vLLM's Python implementation does."""
    check_rms_norm_arguments(input, weight, residual)
    x = _wide(input) if residual is None else _wide(input) + _wide(residual)
    output = x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps)
    output = (output if weight is None else output * weight).to(input.dtype)
    return output if residual is None else (output, x.to(input.dtype))


@control(cpu_alone="F.rms_norm on CUDA gives NaN in rows with an infinite element: docs/findings.md")
def everything_in_float64(
    input: Tensor, weight: Optional = None, residual: Optional = None, eps: float = 1e-6
) -> Result:
    """Computed in double precision and rounded once: more accuracy than required is not wrong."""
    check_rms_norm_arguments(input, weight, residual)
    total = input if residual is None else input + residual
    scale = None if weight is None else weight.double()
    output = F.rms_norm(total.double(), total.shape[-1:], scale, eps).to(input.dtype)  # type: ignore[arg-type]
    return output if residual is None else (output, total)


@control(gives_up=OLD_STYLE)
class SumsOverHalves(RootMeanSquare):
    """A row's mean square is that of its two halves together: another order of summation."""

    def mean_square(self, x: Tensor) -> Tensor:
        half, squares = x.shape[-1] // 2, x.square()
        total = squares[..., :half].sum(-1, keepdim=True) + squares[..., half:].sum(-1, keepdim=True)
        return total / max(x.shape[-1], 1)


@control(gives_up=OLD_STYLE)
class ReciprocalRootOneUnitHigh(RootMeanSquare):
    """1/sqrt is one unit in the last place too large, half of CUDA's allowed error: the same in all rows."""

    def rstd(self, mean_square: Tensor, eps: float) -> Tensor:
        return super().rstd(mean_square, eps) * (1 + torch.finfo(mean_square.dtype).eps)


@control(gives_up=OLD_STYLE)
class GradientByTheCube(RootMeanSquare):
    """d_input as autograd writes it: rstd h - x rstd^3 mean(h x), by products of other sizes."""

    def d_total(self, h: Tensor, xhat: Tensor, rstd: Tensor) -> Tensor:
        x = xhat / rstd
        return rstd * h - x * (rstd * rstd * rstd * (h * x).mean(-1, keepdim=True))


@control(gives_up=OLD_STYLE)
class ReadsTheRoundedSum(RootMeanSquare):
    """rstd is that of the sum before it is rounded, and backward reads the rounded one, as fla-core's kernels do."""

    def total(self, input: Tensor, residual: Optional) -> Tensor:
        return input.clone() if residual is None else _wide(input) + _wide(residual)

    def new_residual(self, total: Tensor, output: Tensor) -> Tensor:
        return total.to(output.dtype)

    def read(self, x: Tensor, dtype: torch.dtype) -> Tensor:
        return x.to(dtype).to(x.dtype)
