"""Forward computes another function."""

import torch
import torch.nn.functional as F
from torch import Tensor

from tests.zoo.honest.mlp import Network
from tests.zoo.registry import fault


@fault("forward-parity", "output was")
class NoRelu(Network):
    """The hidden layer is linear."""

    def hidden(self, z: Tensor) -> Tensor:
        return z


@fault("forward-parity", "output was")
class LeakyRelu(Network):
    """A hundredth of a negative pre-activation passes."""

    def hidden(self, z: Tensor) -> Tensor:
        return F.leaky_relu(z)


@fault("forward-parity", "output was")
class GeluForRelu(Network):
    """gelu instead of relu."""

    def hidden(self, z: Tensor) -> Tensor:
        return F.gelu(z)


@fault("forward-parity", "output was .*values huge-hidden")
class Relu6(Network):
    """Hidden values are limited to 6, which ordinary values do not reach."""

    def hidden(self, z: Tensor) -> Tensor:
        return F.relu6(z)


@fault("forward-parity", "output was")
class BiasAfterRelu(Network):
    """The hidden bias is added after relu."""

    def pre_activations(self, input: Tensor, hidden_weights: Tensor, hidden_bias: Tensor) -> Tensor:
        self._bias = hidden_bias
        return F.linear(input, hidden_weights)

    def hidden(self, z: Tensor) -> Tensor:
        return super().hidden(z) + self._bias


@fault("forward-parity", "output was")
class ReluOnOutput(Network):
    """relu is applied to the output as well."""

    def finish(self, output: Tensor) -> Tensor:
        return F.relu(output)


@fault("forward-parity", "output was")
class OutputBiasForgotten(Network):
    """The output bias is not added."""

    def output(self, hidden: Tensor, output_weights: Tensor, output_bias: Tensor) -> Tensor:
        return F.linear(hidden, output_weights)


@fault("forward-parity", "it is 1.01 times")
class OnePercentOutput(Network):
    """The output is one percent too large."""

    def finish(self, output: Tensor) -> Tensor:
        return 1.01 * output


@fault("forward-parity", "zero everywhere", defects=(31,))
class Zeros(Network):
    """The output is zero."""

    def finish(self, output: Tensor) -> Tensor:
        return torch.zeros_like(output)


@fault("forward-parity", "every row equals what row 0 should be")
class RowStrideForgotten(Network):
    """Every row of the batch is row 0."""

    def finish(self, output: Tensor) -> Tensor:
        return output[:1].repeat(len(output), 1)


@fault("forward-parity", "output was")
class VectorTailForgotten(Network):
    """Hidden units behind the last full vector of four are never activated."""

    def hidden(self, z: Tensor) -> Tensor:
        whole = z.shape[1] // 4 * 4
        return torch.cat([F.relu(z[:, :whole]), torch.zeros_like(z[:, whole:])], dim=1)


@fault("sizes", r"output was .*hidden-(257|1025)")
class OneBlockOfUnits(Network):
    """With 256 hidden units or more, those behind the last full block of 256 are not computed."""

    def hidden(self, z: Tensor) -> Tensor:
        edge = z.shape[1] // 256 * 256 or z.shape[1]
        return torch.cat([F.relu(z[:, :edge]), torch.zeros_like(z[:, edge:])], dim=1)
