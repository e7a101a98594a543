"""Forward is right and backward is not."""

import torch
from torch import Tensor

from tests.zoo.honest.lltm import Cell, Outputs
from tests.zoo.registry import fault


@fault("vjp-parity", "if the cotangent of new_cell were ignored")
class MissingGradCell(Cell):
    """d_new_cell lacks the cotangent of new_cell."""

    def d_new_cell(self, g_h: Tensor, g_c: Tensor, tanh_cell: Tensor, output_gate: Tensor) -> Tensor:
        return g_h * output_gate * (1 - tanh_cell**2)


@fault("vjp-parity", "if the cotangent of new_h were ignored")
class MissingGradH(Cell):
    """The cotangent of new_h is read as zero."""

    def cotangents(self, g_h: Tensor, g_c: Tensor) -> Outputs:
        return torch.zeros_like(g_h), g_c


@fault("vjp-parity", "NaN or infinite where the exact value is finite[^$]*overflowing-exp", defects=(1,))
class MaskTimesExp(Cell):
    """elu' as (z < 0) * exp(z): 0 * inf is NaN beyond the overflow of exp."""

    def elu_slope(self, z: Tensor, candidate: Tensor) -> Tensor:
        return (z > 0) + (z <= 0) * torch.exp(z)


@fault("vjp-parity", "NaN or infinite[^$]*overflowing-exp", dtype=torch.float16, defects=(1,))
class MaskTimesExpHalf(Cell):
    """The same, computed in float16, where exp overflows at 12."""

    def elu_slope(self, z: Tensor, candidate: Tensor) -> Tensor:
        z = z.half()
        return ((z > 0) + (z <= 0) * torch.exp(z)).float()


@fault("vjp-parity", "zero-gates: every pre-activation exactly 0", defects=(2,))
class SlopeZeroAtZero(Cell):
    """elu'(0) = 0."""

    def elu_slope(self, z: Tensor, candidate: Tensor) -> Tensor:
        return torch.where(z > 0, torch.ones_like(z), torch.exp(z.clamp(max=0)) * (z < 0))


@fault("vjp-parity", "gradient of .* was", dtype=torch.bfloat16, defects=(2,))
class SlopeZeroNearZero(Cell):
    """elu' is 0 for tiny negative z, where exp(z) rounds to 1."""

    def elu_slope(self, z: Tensor, candidate: Tensor) -> Tensor:
        exp = torch.exp(z.clamp(max=0).bfloat16())
        return torch.where(z > 0, 1.0, torch.where(exp < 1, exp.float(), 0.0))


@fault("vjp-parity", "gradient of .* was")
class SlopeOfElu(Cell):
    """elu' is computed as elu for z < 0."""

    def elu_slope(self, z: Tensor, candidate: Tensor) -> Tensor:
        return torch.where(z > 0, torch.ones_like(z), candidate)


@fault("vjp-parity", "gradient of .* was")
class SlopeAlwaysOne(Cell):
    """elu' is computed as 1 everywhere."""

    def elu_slope(self, z: Tensor, candidate: Tensor) -> Tensor:
        return torch.ones_like(z)


@fault("vjp-parity", "gradient of .* was")
class NoSigmoidSlope(Cell):
    """The input gate's derivative lacks the factor 1 - input_gate."""

    def d_input_gate(self, d_new_cell: Tensor, candidate: Tensor, input_gate: Tensor) -> Tensor:
        return d_new_cell * candidate * input_gate


@fault("vjp-parity", "gradient of .* was")
class SigmoidSlopeOfOther(Cell):
    """The output gate's derivative uses 1 - o^2, which is tanh's."""

    def d_output_gate(self, g_h: Tensor, tanh_cell: Tensor, output_gate: Tensor) -> Tensor:
        return g_h * tanh_cell * (1 - output_gate**2)


@fault("vjp-parity", "gradient of .* was")
class NoTanhSlope(Cell):
    """d_new_cell lacks the factor 1 - tanh^2."""

    def d_new_cell(self, g_h: Tensor, g_c: Tensor, tanh_cell: Tensor, output_gate: Tensor) -> Tensor:
        return g_h * output_gate + g_c


@fault("vjp-parity", "gradient of old_cell was")
class OldCellWithoutOutputGate(Cell):
    """d_old_cell carries the cotangent of new_cell twice."""

    def d_old_cell(self, d_new_cell: Tensor) -> Tensor:
        return 2 * d_new_cell


@fault("vjp-parity", "input_gate and output_gate, which are exchanged|gradient of .* was")
class GateGradientsSwapped(Cell):
    """The gradients of input gate and output gate are written to each other's columns."""

    def joined(self, d_input_gate: Tensor, d_output_gate: Tensor, d_candidate: Tensor) -> Tensor:
        return torch.cat([d_output_gate, d_input_gate, d_candidate], dim=1)


@fault("vjp-parity", "gradient of .* was")
class TwoPercentOnOneGate(Cell):
    """The input gate's gradient is two percent too large."""

    def d_input_gate(self, d_new_cell: Tensor, candidate: Tensor, input_gate: Tensor) -> Tensor:
        return 1.02 * super().d_input_gate(d_new_cell, candidate, input_gate)


@fault("vjp-parity", "gradient of (weights|bias) was .* \\(gain of output_gate error", dtype=torch.bfloat16)
class TwoPercentOnOneGateBfloat16(Cell):
    """The output gate's gradient is two percent too large, in bfloat16: 0.1% of the whole gradient."""

    def d_output_gate(self, g_h: Tensor, tanh_cell: Tensor, output_gate: Tensor) -> Tensor:
        return 1.02 * super().d_output_gate(g_h, tanh_cell, output_gate)


@fault("vjp-parity", "gradient of .* was", dtype=torch.float16)
class TwoPercentOnOneGateHalf(Cell):
    """The candidate's gradient is two percent too small, in float16."""

    def d_candidate(self, d_new_cell: Tensor, input_gate: Tensor, slope: Tensor) -> Tensor:
        return 0.98 * super().d_candidate(d_new_cell, input_gate, slope)


@fault("vjp-parity", "gradient of weights was .*[^$]*zero everywhere")
class NoWeightGradient(Cell):
    """The gradient of the weights is zero."""

    def d_weights(self, d_gates: Tensor, X: Tensor) -> Tensor:
        return torch.zeros_like(d_gates.t() @ X)


@fault("vjp-parity", "gradient of bias was .*[^$]*times what it should be")
class MeanForSum(Cell):
    """The bias gradient is the mean over the batch."""

    def d_bias(self, d_gates: Tensor) -> Tensor:
        return d_gates.mean(0)


@fault("vjp-parity", "gradient of bias was")
class BiasOfFirstRow(Cell):
    """The bias gradient is that of the first row of the batch."""

    def d_bias(self, d_gates: Tensor) -> Tensor:
        return d_gates[0]


@fault("raw-backward", r"backward returned a gradient of shape \(1, 15\) for bias", defects=(4,))
class BiasGradientKeepsDim(Cell):
    """The bias gradient has shape (1, 3H), which autograd sums away silently."""

    def d_bias(self, d_gates: Tensor) -> Tensor:
        return d_gates.sum(0, keepdim=True)


@fault("raw-backward", r"backward returned a gradient of shape \(3, 15\) for bias")
class BiasGradientNotSummed(Cell):
    """The bias gradient is not summed over the batch; autograd's own reduction hides it."""

    def d_bias(self, d_gates: Tensor) -> Tensor:
        return d_gates


@fault("vjp-parity", "gradient of weights was")
class LastRowOfBatchForgotten(Cell):
    """The weights' gradient lacks the last row of the batch."""

    def d_weights(self, d_gates: Tensor, X: Tensor) -> Tensor:
        return d_gates[:-1].t() @ X[:-1]


@fault("vjp-parity", "gradient of (input|old_h) was")
class WeightsTransposed(Cell):
    """d_X uses the weights of the gates in reverse order."""

    def d_X(self, d_gates: Tensor, weights: Tensor) -> Tensor:
        return d_gates @ weights.flip(0)


@fault("gradient-subsets", "gradient of input is missing .* when only input requires grad", defects=(3,))
class InputGradientByStateIndex(Cell):
    """The gradient of input is returned only if that of old_h or old_cell is required."""

    def wanted(self, gradients: tuple[Tensor, ...], needs: tuple[bool, ...]) -> tuple[Tensor | None, ...]:
        found = super().wanted(gradients, needs)
        return (found[0] if needs[3] or needs[4] else None, *found[1:])


@fault("gradient-subsets", "gradient of bias is missing")
class BiasGradientWithWeightsOnly(Cell):
    """The bias gradient is computed only together with the weights'."""

    def wanted(self, gradients: tuple[Tensor, ...], needs: tuple[bool, ...]) -> tuple[Tensor | None, ...]:
        found = super().wanted(gradients, needs)
        return (*found[:2], found[2] if needs[1] else None, *found[3:])


@fault("vjp-parity", "backward raised RuntimeError: .*returned an incorrect number of gradients", defects=(18,))
class TooFewGradients(Cell):
    """Backward returns four gradients for five inputs."""

    def wanted(self, gradients: tuple[Tensor, ...], needs: tuple[bool, ...]) -> tuple[Tensor | None, ...]:
        return super().wanted(gradients, needs)[:4]


@fault("gradcheck", "gradcheck rejects the gradients", dtype=torch.float64)
class WrongOnlyInFloat64(Cell):
    """The output gate's gradient goes through float32, as with a literal or a function of the wrong type."""

    def d_output_gate(self, g_h: Tensor, tanh_cell: Tensor, output_gate: Tensor) -> Tensor:
        return super().d_output_gate(g_h, tanh_cell, output_gate) * 1.001


@fault("vjp-parity", "gradient of .* was", dtype=torch.float64, defects=(5,))
class DoubleThroughFloat(Cell):
    """A double-precision backward that goes through single precision."""

    def elu_slope(self, z: Tensor, candidate: Tensor) -> Tensor:
        return super().elu_slope(z.float(), candidate).double()
