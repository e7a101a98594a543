"""Whether a failure may be the suite's own: the reference in the dtype itself fails the same comparison.

The reference is evaluated on the subject's device, in its dtype, in two ways: by the contract's closed VJP, and by
autograd through its forward. Nobody optimised it. Where both ways exceed the allowance too, the model of rounding is
wrong about that scenario, or the oracle is.
"""

from __future__ import annotations

import torch
from torch import Tensor

from backends.base import CUDA
from harness.judging.compare import compare
from harness.judging.oracle import Expected, evaluate, with_zeros
from harness.judging.scenario import Call, Scenario, realise
from harness.judging.subject import Subject
from spec.contract import Operator


def reference_fails_too(subject: Subject, scenario: Scenario, measure: Expected, tensor: str, specials: str) -> bool:
    """Whether every evaluation of the reference in the subject's dtype is wrong at `tensor`, an output or a gradient.

    `tensor` is the name of an output, or `gradient of ` and the name of an input, as in `Failure.tensor`.
    """
    operator = subject.operator
    names = [arg.name for arg in operator.outputs] + [f"gradient of {arg.name}" for arg in operator.inputs]
    gradients = {f"gradient of {name}": envelope for name, envelope in measure.gradients.items()}
    envelope = {**measure.outputs, **gradients}[tensor]
    # The tensors of a function in another process are on the CPU here, but it computes on its own device.
    device = "cuda" if subject.device == CUDA and torch.cuda.is_available() else "cpu"
    call = with_zeros(operator, realise(operator, scenario, subject.dtype, device))
    for way in (evaluate, by_autograd):
        found = dict(zip(names, way(operator, call), strict=True))[tensor]
        if compare(found, envelope, specials).holds:
            return False
    return True


def by_autograd(operator: Operator, call: Call) -> tuple[Tensor, ...]:
    """(outputs..., gradients...) by the contract's `forward` and autograd, in the dtype of the call."""
    pairs = zip(operator.inputs, call.inputs, strict=True)
    inputs = tuple(tensor.detach().requires_grad_(arg.differentiable) for arg, tensor in pairs)
    leaves = [tensor for tensor in inputs if tensor.requires_grad]
    outputs = operator.forward(*inputs)
    if not leaves:
        return *outputs, *inputs
    used = [(y, g) for y, g in zip(outputs, call.cotangents, strict=True) if g is not None and y.requires_grad]
    if not used:
        return *outputs, *(torch.zeros_like(tensor) for tensor in inputs)
    ys, gs = zip(*used, strict=True)
    found = iter(torch.autograd.grad(ys, leaves, gs, allow_unused=True))
    each = ((x, next(found) if x.requires_grad else None) for x in inputs)
    gradients = (torch.zeros_like(x) if g is None else g for x, g in each)
    return *(y.detach() for y in outputs), *gradients
