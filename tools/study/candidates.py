"""What the study calls of each operator: right implementations, faults, and errors of a few percent in one part.

Right are the shipped backends that run on the CPU and the controls of tests/zoo, as for `tools.soak`. Faults are those
of tests/zoo that return wrong values at ordinary inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from backends.base import CPU
from harness.discovery import operator
from harness.judging.subject import Subject
from tests.zoo import registry as zoo
from tests.zoo.honest.layer_norm import Dims, Norm
from tests.zoo.honest.lltm import Cell
from tests.zoo.honest.lltm_sequence import Sequence
from tests.zoo.honest.mlp import Network
from tools.soak.implementations import right

OPERATORS = ("lltm", "mlp", "layer_norm", "lltm_sequence")
#: Groups of candidates.
CONTROLS, FAULTS, GRADED = "controls", "faults", "graded"
#: Kinds of faults that are about values.
KINDS = ("math", "gradient", "precision", "scan")
_NO_VALUES = "raises; there are no values"
_SUMMED_AWAY = "a wrong shape that autograd sums away: the values are right"

#: Faults of these kinds that ordinary values do not show, and why: never counted among the detections.
LEFT_OUT: dict[str, dict[str, str]] = {
    "lltm": {
        "MaskTimesExp": "wrong only beyond the overflow of exp",
        "MaskTimesExpHalf": "wrong only beyond the overflow of exp in float16",
        "SlopeZeroAtZero": "wrong only at pre-activations of exactly 0",
        "SlopeZeroNearZero": "wrong only at tiny negative pre-activations",
        "BiasGradientKeepsDim": _SUMMED_AWAY,
        "BiasGradientNotSummed": _SUMMED_AWAY,
        "TooFewGradients": _NO_VALUES,
    },
    "mlp": {
        "Relu6": "wrong only at hidden values above 6",
        "SlopeOneAtZero": "wrong only at pre-activations of exactly 0",
        "SlopeHalfAtZero": "wrong only at pre-activations of exactly 0",
        "SlopeZeroNearZero": "wrong only at tiny positive pre-activations",
        "BiasGradientKeepsDim": _SUMMED_AWAY,
        "TooFewGradients": _NO_VALUES,
    },
    "layer_norm": {
        "CancellingVariance": "wrong only where the mean is large",
        "HidesNotANumber": "wrong only at NaN and infinities",
        "EpsLostInHalf": "wrong only where the variance is as small as eps",
        "NormalisesTheLastDimensionAlone": _NO_VALUES,
    },
    "lltm_sequence": {},
}
#: Faults that the value families show. Ordinary values hardly show the last two either.
AT_EDGES: dict[str, tuple[str, ...]] = {
    "lltm": ("MaskTimesExp", "MaskTimesExpHalf", "SlopeZeroAtZero", "SlopeZeroNearZero"),
    "mlp": ("Relu6", "SlopeOneAtZero", "SlopeHalfAtZero", "SlopeZeroNearZero"),
    "layer_norm": ("CancellingVariance", "HidesNotANumber", "EpsLostInHalf", "VarianceInHalf", "MeanInBfloat16"),
    "lltm_sequence": (),
}
#: Faults that are right in other dtypes. So are all of the kind "precision", which run in their own dtype alone.
_DOUBLE, _LONG = (torch.float64,), (torch.float32, torch.float64)
ONLY_IN: dict[str, dict[str, tuple[torch.dtype, ...]]] = {
    "lltm": {"DoubleThroughFloat": _DOUBLE},
    "mlp": {},
    "layer_norm": {"NegativeVariance": _LONG, "EpsOutsideTheRoot": _LONG},
    "lltm_sequence": {"DoubleThroughFloat": _DOUBLE},
}

HONEST: dict[str, Callable[..., Any]] = {
    "lltm": Cell(),
    "mlp": Network(),
    "layer_norm": Norm(),
    "lltm_sequence": Sequence(),
}


class GradedCell(Cell):
    """The gradient of one gate is multiplied by 1 + s."""

    def __init__(self, gate: str, s: float) -> None:
        self.gate, self.factor = gate, 1 + s

    def _scaled(self, gate: str, gradient: Tensor) -> Tensor:
        return self.factor * gradient if self.gate == gate else gradient

    def d_input_gate(self, d_new_cell: Tensor, candidate: Tensor, input_gate: Tensor) -> Tensor:
        return self._scaled("input", super().d_input_gate(d_new_cell, candidate, input_gate))

    def d_output_gate(self, g_h: Tensor, tanh_cell: Tensor, output_gate: Tensor) -> Tensor:
        return self._scaled("output", super().d_output_gate(g_h, tanh_cell, output_gate))

    def d_candidate(self, d_new_cell: Tensor, input_gate: Tensor, slope: Tensor) -> Tensor:
        return self._scaled("candidate", super().d_candidate(d_new_cell, input_gate, slope))


class GradedNetwork(Network):
    """The gradient of the hidden values is multiplied by 1 + s."""

    def __init__(self, part: str, s: float) -> None:
        self.part, self.factor = part, 1 + s

    def d_hidden(self, g: Tensor, output_weights: Tensor) -> Tensor:
        return self.factor * super().d_hidden(g, output_weights)


class GradedNorm(Norm):
    """In the gradient of the input, the term of the mean or that of the variance is multiplied by 1 + s."""

    def __init__(self, part: str, s: float) -> None:
        self.of_mean, self.of_variance = (1 + s * (part == name) for name in ("mean", "variance"))

    def d_input(self, h: Tensor, xhat: Tensor, rstd: Tensor, dims: Dims) -> Tensor:
        mean = self.of_mean * h.mean(dims, keepdim=True)
        return rstd * (h - mean - self.of_variance * xhat * (h * xhat).mean(dims, keepdim=True))


class GradedSequence(Sequence):
    """The gradient that a step gets from the next one, through h or through the cell, is multiplied by 1 + s."""

    def __init__(self, part: str, s: float) -> None:
        self.of_h, self.of_cell = (1 + s * (part == name) for name in ("h", "cell"))

    def carried(self, t: int, d_h: Tensor, d_cell: Tensor) -> tuple[Tensor, Tensor]:
        return self.of_h * d_h, (self.of_cell if t < self.last else 1) * d_cell

    def cotangents(self, g_h: Tensor, g_c: Tensor) -> tuple[list[Tensor], Tensor]:
        self.last = len(g_h) - 1  # what the last step gets is the cotangent of c_T
        return super().cotangents(g_h, g_c)


#: The class of an error of a given size, and the parts that it may be in.
_GRADED: dict[str, tuple[Callable[[str, float], Callable[..., Any]], tuple[str, ...]]] = {
    "lltm": (GradedCell, ("input", "output", "candidate")),
    "mlp": (GradedNetwork, ("hidden",)),
    "layer_norm": (GradedNorm, ("mean", "variance")),
    "lltm_sequence": (GradedSequence, ("h", "cell")),
}
#: Sizes s of these errors.
GRADES = (0.005, 0.01, 0.02, 0.05, 0.1)


def name_of(dtype: torch.dtype) -> str:
    """`float32`."""
    return str(dtype).removeprefix("torch.")


def subject(of: str, name: str, dtype: torch.dtype, function: Callable[..., Any]) -> Subject:
    """A function as the study calls it."""
    return Subject(operator(of), name, CPU, dtype, function)


def honest(of: str, dtype: torch.dtype) -> Subject:
    """The right implementation that faults are made from."""
    return subject(of, "honest", dtype, HONEST[of])


def controls(of: str, dtype: torch.dtype) -> tuple[Subject, ...]:
    """Every right implementation that runs on this CPU."""
    return right(of, name_of(dtype), CPU)


def graded(of: str, dtype: torch.dtype) -> Iterator[Subject]:
    """Errors of each size in each part: `0.02 input`."""
    make, parts = _GRADED[of]
    for s in GRADES:
        for part in parts:
            yield subject(of, f"{s:g} {part}", dtype, make(part, s))


def value_faults(of: str) -> list[zoo.Fault]:
    """The faults that return wrong values for ordinary inputs, in any dtype."""
    found = [fault for fault in zoo.faults(of) if fault.kind in KINDS and fault.name not in LEFT_OUT[of]]
    return [fault for fault in found if fault.caught_by in ("forward-parity", "vjp-parity")]


def wrong_in(fault: zoo.Fault, dtype: torch.dtype) -> bool:
    """Whether the fault is wrong in that dtype."""
    usual = (fault.dtype,) if fault.kind == "precision" else (dtype,)
    return dtype in ONLY_IN[fault.operator].get(fault.name, usual)


def faults(of: str, dtype: torch.dtype) -> list[Subject]:
    """The faults that are wrong in that dtype."""
    found = [fault for fault in value_faults(of) if wrong_in(fault, dtype)]
    return [subject(of, fault.name, dtype, fault.function) for fault in found]


def edge_faults(of: str, dtype: torch.dtype) -> list[Subject]:
    """The faults that a value family shows in that dtype."""
    found = [fault for fault in zoo.faults(of) if fault.name in AT_EDGES[of] and fault.dtype == dtype]
    return [subject(of, fault.name, dtype, fault.function) for fault in found]
