"""Missing gradients: there is no backward, or it returns a gradient only together with another."""

import torch
import torch.nn.functional as F
from torch import Tensor

from tests.zoo.honest.mlp import Network
from tests.zoo.registry import fault


@fault("vjp-parity", "no output requires grad, but should: input, hidden_weights", defects=(28,))
class BackwardMissing(Network):
    """Autograd does not record the kernel: its output silently has no history."""

    def __call__(self, *inputs: Tensor) -> Tensor:
        with torch.no_grad():
            return super().__call__(*inputs)


@fault("vjp-parity", r"gradient of input is missing \(None\) when input, .* require grad", defects=(28,))
class HiddenLayerDetached(Network):
    """The hidden layer is a kernel without a backward; only the output layer, in plain torch, has one."""

    def __call__(
        self, input: Tensor, hidden_weights: Tensor, hidden_bias: Tensor, output_weights: Tensor, output_bias: Tensor
    ) -> Tensor:
        self.check(input, hidden_weights, hidden_bias, output_weights, output_bias)
        with torch.no_grad():
            hidden = self.hidden(self.pre_activations(input, hidden_weights, hidden_bias))
        return F.linear(hidden, output_weights, output_bias)


@fault("gradient-subsets", "gradient of input is missing .* when only input requires grad", defects=(3,))
class InputGradientWithWeightsOnly(Network):
    """The gradient of the input is computed only together with that of the hidden weights."""

    def wanted(self, gradients: tuple[Tensor, ...], needs: tuple[bool, ...]) -> tuple[Tensor | None, ...]:
        found = super().wanted(gradients, needs)
        return (found[0] if needs[1] else None, *found[1:])


@fault("gradient-subsets", "gradient of output_bias is missing")
class OutputBiasWithWeightsOnly(Network):
    """The gradient of the output bias is computed only together with that of the output weights."""

    def wanted(self, gradients: tuple[Tensor, ...], needs: tuple[bool, ...]) -> tuple[Tensor | None, ...]:
        found = super().wanted(gradients, needs)
        return (*found[:4], found[4] if needs[3] else None)


@fault("gradient-subsets", "no output requires grad, but should")
class FrozenWithoutWeights(Network):
    """Nothing requires grad unless the hidden weights do."""

    def __call__(self, *inputs: Tensor) -> Tensor:
        output = super().__call__(*inputs)
        return output if inputs[1].requires_grad else output.detach()
