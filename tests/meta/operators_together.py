"""Several operators of one backend in one process: imported by a process of `harness.judging.fresh_process`."""

from __future__ import annotations

import json

import torch

from harness import discovery
from spec.contract import Draw


def held(question: str) -> str:
    """Load the operators in the given order, call each twice; "right" if outputs and gradients are."""
    backend, device, names = json.loads(question)
    functions = {name: discovery.load_function(name, backend, device) for name in names}
    for name in (*names, *names):
        operator = discovery.operator(name)
        draw = Draw(0)
        inputs = [tensor.requires_grad_() for tensor in operator.ordinary(operator.case("small").sizes, draw).values()]
        outputs = operator.bound(functions[name])(*inputs)
        outputs = (outputs,) if isinstance(outputs, torch.Tensor) else outputs
        cotangents = tuple(draw.normal(tuple(y.shape)) for y in outputs)
        torch.testing.assert_close(tuple(outputs), operator.forward(*inputs))
        for create_graph in (False, True):
            gradients = torch.autograd.grad(outputs, inputs, cotangents, retain_graph=True, create_graph=create_graph)
            torch.testing.assert_close(gradients, operator.vjp(tuple(inputs), cotangents))
    return "right"
