"""Inputs are changed, or the output is not the caller's own."""

import torch
from torch import Tensor

from tests.zoo.honest.mlp import Network
from tests.zoo.registry import fault


@fault("no-side-effects", "changed .* elements of hidden_bias in place")
class BiasScaledInPlace(Network):
    """The hidden bias is scaled in place, as if to prepare it for the kernel."""

    def pre_activations(self, input: Tensor, hidden_weights: Tensor, hidden_bias: Tensor) -> Tensor:
        z = super().pre_activations(input, hidden_weights, hidden_bias)
        hidden_bias.data.mul_(2)
        return z


@fault("no-side-effects", "backward changed .* of the cotangent of output in place")
class CotangentInPlace(Network):
    """Backward uses the cotangent as scratch."""

    def cotangent(self, g: Tensor) -> Tensor:
        mine = g.clone()
        g.mul_(2)
        return mine


@fault("no-side-effects", "output shares memory with output of an earlier call")
class OutputBufferReused(Network):
    """One output buffer serves every call of one size."""

    def __init__(self) -> None:
        self._buffers: dict[tuple[object, ...], Tensor] = {}

    def finish(self, output: Tensor) -> Tensor:
        buffer = self._buffers.setdefault((output.shape, output.dtype), torch.empty_like(output))
        return buffer.copy_(output)


@fault("no-side-effects", "output shares memory with output_bias")
class ReturnsTheBias(Network):
    """Without grad, the output is a view of the bias, expanded over the rows, to which the product is added later."""

    def __call__(self, *inputs: Tensor) -> Tensor:
        output = super().__call__(*inputs)
        return output if torch.is_grad_enabled() else inputs[4].detach().expand_as(output)
