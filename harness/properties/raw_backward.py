"""Backward itself returns gradients of the inputs' shapes, before the engine changes them.

The engine sums a gradient of shape (1, n) to (n,) silently. So the autograd node is called directly here.
"""

from __future__ import annotations

from typing import Any

import torch

from harness.errors import Failure
from harness.judging.property import Property
from harness.judging.scenario import Scenario
from harness.judging.scenarios import smallest
from harness.judging.subject import CANDIDATE_ERRORS, Subject, raised_in
from harness.report.levels import GRADIENTS


def check(subject: Subject) -> dict[str, Any]:
    """The node of one call, called directly."""
    return {"raw backward": _raw(subject, smallest(subject.operator))}


def _raw(subject: Subject, scenario: Scenario) -> str:
    call = subject.realise(scenario)
    outputs = subject.outputs(call, scenario)
    real = [y for arg, y in zip(subject.operator.outputs, outputs, strict=True) if arg.is_floating]
    nodes = {output.grad_fn for output in real}
    node = real[0].grad_fn
    if len(nodes) != 1 or node is None:
        return "the outputs come from several autograd nodes: nothing to check"
    if not (isinstance(node, torch.autograd.function.BackwardCFunction) or "CppNode" in node.name()):
        return "the node is one of PyTorch's own, which lets the engine sum where it broadcast: nothing to check"
    places = {}
    for arg, tensor in zip(subject.operator.inputs, call.inputs, strict=True):
        for index, (following, _) in enumerate(node.next_functions):
            if following is not None and getattr(following, "variable", None) is tensor:
                places[index] = (arg.name, tensor)
    if len(places) != len(subject.operator.inputs):
        return "the inputs do not feed one autograd node: nothing to check"
    # A node made in C++ is callable; one of torch.autograd.Function has the method that the engine calls.
    backward = node if callable(node) else node.apply  # type: ignore[attr-defined]
    # A node may have more outputs than the operator returns (intermediates kept for double backward).
    arguments = [torch.zeros(m.shape, dtype=m.dtype, device=m.device) for m in node._input_metadata]
    for output, cotangent in zip(outputs, call.cotangents, strict=True):
        if cotangent is not None:
            arguments[output.output_nr] = cotangent
    try:
        with torch.no_grad():  # as the engine does, unless a graph of the gradients is wanted
            raw = backward(*arguments)
    except CANDIDATE_ERRORS as error:
        if "donated buffer" in str(error):
            return "the node is torch.compile's, whose backward cannot be called directly: nothing to check"
        raise raised_in("backward", error, " when its node was called directly") from error
    raw = (raw,) if isinstance(raw, torch.Tensor) else tuple(raw)
    if len(raw) != len(node.next_functions):  # a Python node returns None for each argument that is no tensor
        raw = tuple(gradient for gradient in raw if gradient is not None)
    if len(raw) != len(node.next_functions):
        return "the node returns gradients that cannot be told apart: nothing to check"
    for index, (name, tensor) in places.items():
        # None stands for zeros: vjp-parity judges whether they are right.
        if raw[index] is not None and raw[index].shape != tensor.shape:
            raise Failure(
                f"backward returned a gradient of shape {tuple(raw[index].shape)} for {name}, but should return "
                f"{tuple(tensor.shape)}; autograd hides it by summing [{scenario.describe(subject.operator)}]"
            )
    return "one node, gradients of the inputs' shapes"


PROPERTY = Property("raw-backward", "backward itself returns gradients of the inputs' shapes", check, level=GRADIENTS)
