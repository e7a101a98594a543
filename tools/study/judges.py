"""Rules that decide whether a tensor is right: ours and others in common use, applied to the same tensors."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from harness.judging.compare import NOT_FINITE, SAME, compare
from harness.judging.oracle import expected_of
from harness.judging.scenario import Call, Scenario, realise
from harness.judging.ulps import ulp
from spec.contract import Operator
from spec.envelope import Envelope
from spec.roundoff import UNIT_ROUNDOFF
from tools.study.products import Sums, sums_of

#: The default (rtol, atol) of torch.testing.assert_close.
ASSERT_CLOSE = {
    torch.float64: (1e-7, 1e-7),
    torch.float32: (1.3e-6, 1e-5),
    torch.float16: (1e-3, 1e-5),
    torch.bfloat16: (1.6e-2, 1e-5),
}
#: rtol and atol of KernelBench's later versions; they have none for float64, so it gets those of float32.
KERNELBENCH_LATER = {torch.float64: 1e-4, torch.float32: 1e-4, torch.float16: 1e-2, torch.bfloat16: 1e-2}
#: Decimal digits that every number of so many survives the way into the dtype and back, as C's FLT_DIG.
DECIMAL_DIGITS = {torch.float64: 15, torch.float32: 6, torch.float16: 3, torch.bfloat16: 2}


@dataclass(frozen=True)
class Measure:
    """The right results of one call, by the names in reports: `new_h`, `gradient of bias`."""

    dtype: torch.dtype
    envelopes: dict[str, Envelope]
    #: The reference in float64, rounded once to the dtype.
    rounded: dict[str, Tensor]
    #: The reference in the dtype itself, with autograd's gradients.
    eager: dict[str, Tensor]
    #: The longest sum on the way to each result, and what its terms add up to: see `tools.study.products`.
    sums: dict[str, Sums]


@dataclass(frozen=True)
class Judge:
    """`accepts(measure, name, candidate)` for one tensor; a call is accepted if all its tensors are."""

    name: str
    rule: str
    accepts: Callable[[Measure, str, Tensor], bool]
    sees_gradients: bool = True

    def rejects(self, measure: Measure, candidate: dict[str, Tensor]) -> bool:
        """Whether the judge rejects the call."""
        seen = {name: value for name, value in candidate.items() if self.sees_gradients or not is_gradient(name)}
        return not all(self.accepts(measure, name, value) for name, value in seen.items())


def is_gradient(name: str) -> bool:
    return name.startswith("gradient of ")


def named(operator: Operator, outputs: tuple[Tensor, ...], gradients: dict[str, Tensor]) -> dict[str, Tensor]:
    """Outputs and gradients of one call by the names of a `Measure`."""
    found = {arg.name: value.detach() for arg, value in zip(operator.outputs, outputs, strict=True)}
    return found | {f"gradient of {name}": value.detach() for name, value in gradients.items()}


def measure(operator: Operator, scenario: Scenario, dtype: torch.dtype) -> Measure:
    """The data that the judges need."""
    call = realise(operator, scenario, dtype)
    found = expected_of(operator, call, dtype)
    envelopes = {**found.outputs, **{f"gradient of {name}": e for name, e in found.gradients.items()}}
    rounded = {name: envelope.exact.to(dtype) for name, envelope in envelopes.items()}
    sums = sums_of(operator, call)
    return Measure(dtype, envelopes, rounded, _eager(operator, call), {name: sums[name] for name in envelopes})


def _eager(operator: Operator, call: Call) -> dict[str, Tensor]:
    leaves = [tensor.requires_grad_() for tensor in call.inputs]
    outputs = operator.forward(*leaves)
    gradients = torch.autograd.grad(outputs, leaves, call.cotangents)
    names = [arg.name for arg in operator.inputs]
    return named(operator, outputs, dict(zip(names, gradients, strict=True)))


def _ours(measure: Measure, name: str, candidate: Tensor) -> bool:
    return compare(candidate, measure.envelopes[name], NOT_FINITE if is_gradient(name) else SAME).holds


def _assert_close(measure: Measure, name: str, candidate: Tensor) -> bool:
    rtol, atol = ASSERT_CLOSE[measure.dtype]
    return torch.allclose(candidate, measure.rounded[name], rtol, atol, equal_nan=True)


def _kernelbench(measure: Measure, name: str, candidate: Tensor) -> bool:
    return torch.allclose(candidate, measure.eager[name], rtol=1e-2, atol=1e-2, equal_nan=True)


def _kernelbench_later(measure: Measure, name: str, candidate: Tensor) -> bool:
    tolerance = KERNELBENCH_LATER[measure.dtype]
    return torch.allclose(candidate, measure.eager[name], rtol=tolerance, atol=tolerance, equal_nan=True)


def _twice_eager(measure: Measure, name: str, candidate: Tensor) -> bool:
    exact, eager = measure.envelopes[name].exact, measure.eager[name].double()
    finite = exact.isfinite() & eager.isfinite()
    if not bool(finite.any()):
        return True
    of_candidate, of_eager = ((t - exact)[finite].abs().max() for t in (candidate.double(), eager))
    return bool(of_candidate <= 2 * of_eager + torch.finfo(measure.dtype).tiny)


def _error(measure: Measure, name: str, candidate: Tensor) -> Tensor:
    """|candidate - the rounded reference|: 0 for equal infinities and for NaN of both, infinite for others."""
    got, should = candidate.double(), measure.rounded[name].double()
    same = (got == should) | (got.isnan() & should.isnan())
    return (got - should).abs().masked_fill(same, 0.0).nan_to_num(nan=math.inf)


def _blas(measure: Measure, name: str, candidate: Tensor) -> bool:
    """||candidate - y||_F <= sqrt(k + 2) u ||A||_F ||B||_F: BLAS++, `test/check_gemm.hh`, as `products` extends it."""
    error, finite = _error(measure, name, candidate), measure.rounded[name].isfinite()
    if bool(error[~finite].any()):
        return False
    return float(error[finite].norm()) <= measure.sums[name].allowed(UNIT_ROUNDOFF[measure.dtype], finite)


def _within_ulps(most: int) -> Callable[[Measure, str, Tensor], bool]:
    def accepts(measure: Measure, name: str, candidate: Tensor) -> bool:
        """|candidate - y| <= most units in the last place of y, for each element."""
        unit = ulp(measure.rounded[name].double().nan_to_num(nan=0.0, posinf=0.0, neginf=0.0), measure.dtype)
        return bool((_error(measure, name, candidate) <= most * unit).all())

    return accepts


def _digits(measure: Measure, name: str, candidate: Tensor) -> bool:
    """|candidate - y| <= 10^-d |y| for each element, d being the dtype's decimal digits less one.

    This is NIST's log relative error, -log10(|candidate - y| / |y|) >= d. At y = 0 it is that of the absolute error.
    """
    should = measure.rounded[name].double().abs()
    scale = torch.where(should == 0, 1.0, should).nan_to_num(nan=0.0, posinf=0.0)
    least = DECIMAL_DIGITS[measure.dtype] - 1
    return bool((_error(measure, name, candidate) <= 10.0**-least * scale).all())


#: NaN equals NaN for all judges, so that they do not differ by their treatment of NaN.
JUDGES = (
    Judge("ours", "the four statistics within the envelope, `harness.judging.compare`", _ours),
    Judge(
        "assert_close",
        "`torch.testing.assert_close`, default tolerances, against the float64 reference rounded to the dtype",
        _assert_close,
    ),
    Judge(
        "twice eager",
        "max abs error <= 2 x that of eager torch in the dtype, both against float64: flash-attention's tests",
        _twice_eager,
    ),
    Judge(
        "allclose 1e-2",
        "`torch.allclose(atol=1e-2, rtol=1e-2)` of the outputs against eager torch: KernelBench, first version",
        _kernelbench,
        sees_gradients=False,
    ),
    Judge(
        "allclose 1e-4",
        "the same with 1e-4 in float32 and 1e-2 in half types: KernelBench, later versions",
        _kernelbench_later,
        sees_gradients=False,
    ),
    Judge("allclose 1e-2, gradients", "`allclose 1e-2`, of the gradients too", _kernelbench),
    Judge(
        "BLAS++",
        "Frobenius norm of the error <= sqrt(k + 2) u times that of A times that of B: BLAS++'s testers",
        _blas,
    ),
    Judge("4 ULP", "each element within 4 units in the last place: GoogleTest's `ASSERT_FLOAT_EQ`", _within_ulps(4)),
    Judge("16 ULP", "the same with 16, the most that OpenCL's table allows pow or erf in float32", _within_ulps(16)),
    Judge(
        "digits",
        "each element right to 5, 14, 2 and 1 decimal digits in the four dtypes: NIST's log relative error",
        _digits,
    ),
)
