"""MLP written out in steps, each a method: right as it stands, and wrong in one way when one method is overridden.

So a fault is one class with one override and one docstring that states the mistake.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from backends.base import check_arguments
from spec.mlp import OPERATOR


class Network:
    """The honest network: every step as `spec/mlp.py` states it."""

    def __call__(
        self, input: Tensor, hidden_weights: Tensor, hidden_bias: Tensor, output_weights: Tensor, output_bias: Tensor
    ) -> Tensor:
        self.check(input, hidden_weights, hidden_bias, output_weights, output_bias)
        return _Function.apply(self, input, hidden_weights, hidden_bias, output_weights, output_bias)

    def check(self, *inputs: Tensor) -> None:
        check_arguments(OPERATOR, *inputs)

    # forward

    def pre_activations(self, input: Tensor, hidden_weights: Tensor, hidden_bias: Tensor) -> Tensor:
        return F.linear(input.contiguous(), hidden_weights, hidden_bias)

    def hidden(self, z: Tensor) -> Tensor:
        return F.relu(z)

    def output(self, hidden: Tensor, output_weights: Tensor, output_bias: Tensor) -> Tensor:
        return F.linear(hidden, output_weights, output_bias)

    def finish(self, output: Tensor) -> Tensor:
        return output

    # backward

    def cotangent(self, g: Tensor) -> Tensor:
        return g

    def d_hidden(self, g: Tensor, output_weights: Tensor) -> Tensor:
        return g @ output_weights

    def d_z(self, d_hidden: Tensor, z: Tensor) -> Tensor:
        return torch.where(z > 0, d_hidden, torch.zeros_like(d_hidden))

    def d_input(self, d_z: Tensor, hidden_weights: Tensor) -> Tensor:
        return d_z @ hidden_weights

    def d_hidden_weights(self, d_z: Tensor, input: Tensor) -> Tensor:
        return d_z.t() @ input

    def d_hidden_bias(self, d_z: Tensor) -> Tensor:
        return d_z.sum(0)

    def d_output_weights(self, g: Tensor, hidden: Tensor) -> Tensor:
        return g.t() @ hidden

    def d_output_bias(self, g: Tensor) -> Tensor:
        return g.sum(0)

    def wanted(self, gradients: tuple[Tensor, ...], needs: tuple[bool, ...]) -> tuple[Tensor | None, ...]:
        return tuple(gradient if need else None for gradient, need in zip(gradients, needs, strict=True))

    def saved(
        self, input: Tensor, hidden_weights: Tensor, hidden_bias: Tensor, output_weights: Tensor
    ) -> tuple[Tensor, ...]:
        return input, hidden_weights, hidden_bias, output_weights


class _Function(torch.autograd.Function):
    """Forward and backward by the steps of a network. Backward recomputes from the saved inputs, so it has a graph."""

    @staticmethod
    def forward(ctx: Any, network: Network, *inputs: Tensor) -> Tensor:
        input, hidden_weights, hidden_bias, output_weights, output_bias = inputs
        ctx.network = network
        ctx.save_for_backward(*network.saved(*inputs[:4]))
        hidden = network.hidden(network.pre_activations(input, hidden_weights, hidden_bias))
        return network.finish(network.output(hidden, output_weights, output_bias))

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor | None, ...]:
        network: Network = ctx.network
        input, hidden_weights, hidden_bias, output_weights = ctx.saved_tensors
        g = network.cotangent(g)
        z = network.pre_activations(input, hidden_weights, hidden_bias)
        d_z = network.d_z(network.d_hidden(g, output_weights), z)
        gradients = (
            network.d_input(d_z, hidden_weights),
            network.d_hidden_weights(d_z, input),
            network.d_hidden_bias(d_z),
            network.d_output_weights(g, network.hidden(z)),
            network.d_output_bias(g),
        )
        return None, *network.wanted(gradients, ctx.needs_input_grad[1:])
