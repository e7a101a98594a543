"""Fewer digits than the dtype has."""

import torch
import torch.nn.functional as F
from torch import Tensor

from tests.zoo.honest.mlp import Network
from tests.zoo.registry import fault


@fault("forward-parity", "output was")
class Bfloat16Products(Network):
    """float32 inputs are silently multiplied in bfloat16."""

    def pre_activations(self, input: Tensor, hidden_weights: Tensor, hidden_bias: Tensor) -> Tensor:
        return (input.bfloat16() @ hidden_weights.bfloat16().t()).float() + hidden_bias


def _tf32(tensor: Tensor) -> Tensor:
    """Rounded to the 10 bits of mantissa that TF32 keeps."""
    if tensor.dtype != torch.float32:
        return tensor
    return ((tensor.detach().view(torch.int32) + 0x1000) & ~0x1FFF).view(torch.float32)


@fault("forward-parity", "output was")
class Tf32OutputLayer(Network):
    """The output layer's product is silently computed in TF32."""

    def output(self, hidden: Tensor, output_weights: Tensor, output_bias: Tensor) -> Tensor:
        return F.linear(_tf32(hidden), _tf32(output_weights), output_bias)


@fault("vjp-parity", "gradient of (input|hidden_weights|hidden_bias) was")
class Tf32InBackwardAlone(Network):
    """Only backward multiplies in TF32."""

    def d_hidden(self, g: Tensor, output_weights: Tensor) -> Tensor:
        return _tf32(g) @ _tf32(output_weights)


@fault("vjp-parity", "gradient of output_weights was")
class HiddenKeptInHalf(Network):
    """Hidden values are kept for backward in bfloat16, to save memory."""

    def d_output_weights(self, g: Tensor, hidden: Tensor) -> Tensor:
        return g.t() @ hidden.bfloat16().to(g.dtype)


@fault("forward-parity", "output was", dtype=torch.float64, defects=(5,))
class DoubleThroughFloat(Network):
    """A double-precision relu that rounds to single precision."""

    def hidden(self, z: Tensor) -> Tensor:
        return super().hidden(z.float()).double()


@fault("sizes", "output was .*hidden-", dtype=torch.bfloat16)
class AccumulatedInBfloat16(Network):
    """The output's sum over the hidden units is rounded to bfloat16 after each term."""

    def output(self, hidden: Tensor, output_weights: Tensor, output_bias: Tensor) -> Tensor:
        total = output_bias.expand(len(hidden), -1)
        for unit in range(hidden.shape[1]):
            total = total + hidden[:, unit, None] * output_weights[:, unit]
        return total
