"""Forward is right and backward is not."""

import torch
from torch import Tensor

from tests.zoo.honest.mlp import Network
from tests.zoo.registry import fault


@fault("vjp-parity", "gradient of (input|hidden_weights|hidden_bias) was", defects=(22,))
class HiddenGradientNotMasked(Network):
    """The gradient passes the hidden layer as if there were no relu."""

    def d_z(self, d_hidden: Tensor, z: Tensor) -> Tensor:
        return d_hidden


@fault("vjp-parity", "gradient of (input|hidden_weights|hidden_bias) was", defects=(22,))
class MaskedByItsOwnSign(Network):
    """relu is applied to the gradient, instead of relu's derivative."""

    def d_z(self, d_hidden: Tensor, z: Tensor) -> Tensor:
        return d_hidden.clamp(min=0)


@fault("vjp-parity", "gradient of (input|hidden_weights|hidden_bias) was")
class MaskTurnedAround(Network):
    """The mask of relu is inverted."""

    def d_z(self, d_hidden: Tensor, z: Tensor) -> Tensor:
        return d_hidden - super().d_z(d_hidden, z)


@fault("vjp-parity", "gradient of .* was .*values zero-pre-activations")
class SlopeOneAtZero(Network):
    """relu'(0) = 1."""

    def d_z(self, d_hidden: Tensor, z: Tensor) -> Tensor:
        return torch.where(z >= 0, d_hidden, torch.zeros_like(d_hidden))


@fault("vjp-parity", "gradient of .* was .*values zero-pre-activations", dtype=torch.bfloat16)
class SlopeHalfAtZero(Network):
    """relu'(0) = 1/2, in bfloat16."""

    def d_z(self, d_hidden: Tensor, z: Tensor) -> Tensor:
        return super().d_z(d_hidden, z) + (z == 0) * d_hidden / 2


@fault("vjp-parity", "gradient of .* was .*values tiny-pre-activations")
class SlopeZeroNearZero(Network):
    """A pre-activation counts as positive from 1e-6 on."""

    def d_z(self, d_hidden: Tensor, z: Tensor) -> Tensor:
        return super().d_z(d_hidden, z) * (z > 1e-6)


@fault("vjp-parity", "gradient of (input|hidden_weights|hidden_bias) was")
class MaskWithoutBias(Network):
    """Backward uses the sign of the product without the bias."""

    def saved(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        self._bias = inputs[2].detach()
        return super().saved(*inputs)

    def d_z(self, d_hidden: Tensor, z: Tensor) -> Tensor:
        return super().d_z(d_hidden, z - self._bias)


@fault("vjp-parity", "gradient of (input|hidden_weights|hidden_bias) was")
class LeakySlope(Network):
    """A hundredth of the gradient passes where relu' is 0."""

    def d_z(self, d_hidden: Tensor, z: Tensor) -> Tensor:
        return torch.where(z > 0, d_hidden, 0.01 * d_hidden)


@fault("vjp-parity", "gradient of output_weights was")
class OutputWeightsOfPreActivations(Network):
    """The gradient of the output weights uses the pre-activations instead of the hidden values."""

    def __init__(self) -> None:
        self._in_backward = False

    def cotangent(self, g: Tensor) -> Tensor:
        self._in_backward = True
        return super().cotangent(g)

    def hidden(self, z: Tensor) -> Tensor:
        was, self._in_backward = self._in_backward, False
        return z if was else super().hidden(z)


@fault("vjp-parity", "gradient of .* was", dtype=torch.float16)
class TwoPercentHalf(Network):
    """The gradient of the hidden values is two percent too large, in float16."""

    def d_hidden(self, g: Tensor, output_weights: Tensor) -> Tensor:
        return 1.02 * super().d_hidden(g, output_weights)


@fault("vjp-parity", "gradient of .* was", dtype=torch.bfloat16)
class FivePercentBfloat16(Network):
    """The gradient of the hidden values is five percent too small, in bfloat16."""

    def d_hidden(self, g: Tensor, output_weights: Tensor) -> Tensor:
        return 0.95 * super().d_hidden(g, output_weights)


@fault("vjp-parity", "gradient of hidden_bias was .*[^$]*zero everywhere", defects=(28,))
class NoHiddenBiasGradient(Network):
    """The gradient of the hidden bias is zero."""

    def d_hidden_bias(self, d_z: Tensor) -> Tensor:
        return torch.zeros_like(super().d_hidden_bias(d_z))


@fault("vjp-parity", "gradient of output_bias was .*[^$]*times what it should be")
class MeanForSum(Network):
    """The gradient of the output bias is the mean over the batch."""

    def d_output_bias(self, g: Tensor) -> Tensor:
        return g.mean(0)


@fault("raw-backward", r"backward returned a gradient of shape \(1, 5\) for hidden_bias", defects=(4,))
class BiasGradientKeepsDim(Network):
    """The gradient of the hidden bias has shape (1, H), which autograd sums away silently."""

    def d_hidden_bias(self, d_z: Tensor) -> Tensor:
        return d_z.sum(0, keepdim=True)


@fault("vjp-parity", "gradient of output_weights was")
class LastRowOfBatchForgotten(Network):
    """The gradient of the output weights lacks the last row of the batch."""

    def d_output_weights(self, g: Tensor, hidden: Tensor) -> Tensor:
        return g[:-1].t() @ hidden[:-1]


@fault("vjp-parity", "backward raised RuntimeError: .*returned an incorrect number of gradients", defects=(18,))
class TooFewGradients(Network):
    """Backward returns four gradients for five inputs."""

    def wanted(self, gradients: tuple[Tensor, ...], needs: tuple[bool, ...]) -> tuple[Tensor | None, ...]:
        return super().wanted(gradients, needs)[:4]


@fault("gradcheck", "gradcheck rejects the gradients", dtype=torch.float64)
class OnePercentInput(Network):
    """The gradient of the input is one percent too large."""

    def d_input(self, d_z: Tensor, hidden_weights: Tensor) -> Tensor:
        return 1.01 * super().d_input(d_z, hidden_weights)
