"""Right outputs with a wrong gradient: backpropagation stops, or sums over the wrong steps."""

import torch
from torch import Tensor

from tests.zoo.honest.lltm_sequence import Outputs, Sequence, Steps
from tests.zoo.registry import fault


@fault("vjp-parity", "gradient of input was")
class TruncatedAtEveryStep(Sequence):
    """No gradient passes from a step to the previous one."""

    def carried(self, t: int, d_h: Tensor, d_cell: Tensor) -> Outputs:
        return torch.zeros_like(d_h), torch.zeros_like(d_cell)


@fault("sizes", r"gradient of \w+ was .*lltm_sequence\(long: ")
class TruncatedAfterThirtyTwoSteps(Sequence):
    """Backpropagation through time is truncated after 32 steps, which shorter sequences do not show."""

    def carried(self, t: int, d_h: Tensor, d_cell: Tensor) -> Outputs:
        keep = float(t % 32 != 31)
        return d_h * keep, d_cell * keep


@fault("vjp-parity", "gradient of (input|c0) was")
class CellNotCarriedBack(Sequence):
    """The gradient passes from step to step through h alone; the path through the cell is missing."""

    def carried(self, t: int, d_h: Tensor, d_cell: Tensor) -> Outputs:
        return d_h, d_cell * float(not d_h.any())


@fault("vjp-parity", "gradient of input was")
class StateDetached(Sequence):
    """The gradient passes from step to step through the cell alone; h is treated as a constant."""

    def carried(self, t: int, d_h: Tensor, d_cell: Tensor) -> Outputs:
        return torch.zeros_like(d_h), d_cell


@fault("invariants", "the VJP is linear in the cotangents")
class GradientClipped(Sequence):
    """The gradient between steps is clipped, which a training loop may do but an operator may not."""

    def carried(self, t: int, d_h: Tensor, d_cell: Tensor) -> Outputs:
        return d_h.clamp(-1, 1), d_cell.clamp(-1, 1)


@fault("vjp-parity", "gradient of weights was")
class WeightsOfTheLastStep(Sequence):
    """The gradient of the weights is that of the last step alone."""

    def d_weights(self, d_gates: Steps, X: Steps, states: Steps) -> Tensor:
        return d_gates[-1].t() @ X[-1]


@fault("vjp-parity", "gradient of weights was")
class WeightsOfTheStateAfter(Sequence):
    """The state is not shifted: step t's gates are multiplied by h_t instead of h_(t-1)."""

    def d_weights(self, d_gates: Steps, X: Steps, states: Steps) -> Tensor:
        unshifted = [torch.cat([h, x[:, h.shape[1] :]], dim=1) for h, x in zip(states, X, strict=True)]
        return super().d_weights(d_gates, unshifted, states)


@fault("vjp-parity", "gradient of bias was")
class BiasCountedOnce(Sequence):
    """The bias is used in every step, but its gradient is that of one step."""

    def d_bias(self, d_gates: Steps) -> Tensor:
        return d_gates[0].sum(0)


@fault("vjp-parity", "gradient of bias was .*[^$]*it is 0.[35]")
class BiasAveraged(Sequence):
    """The gradient of the bias is the mean over the steps, not their sum."""

    def d_bias(self, d_gates: Steps) -> Tensor:
        return super().d_bias(d_gates) / len(d_gates)


@fault("vjp-parity", "gradient of h0 was 0 .*[^$]*it is zero everywhere")
class InitialStateForgotten(Sequence):
    """The gradient of h0 stops at the first step."""

    def d_h0(self, d_h: Tensor) -> Tensor:
        return torch.zeros_like(d_h)


@fault("vjp-parity", "gradient of .* was .*[^$]*if the cotangent of c_T were ignored")
class LastCellsCotangentIgnored(Sequence):
    """Backward begins with h alone, as if c_T were never used."""

    def cotangents(self, g_h: Tensor, g_c: Tensor) -> tuple[Steps, Tensor]:
        return list(g_h), torch.zeros_like(g_c)


@fault("vjp-parity", "gradient of input was")
class LastStepsCotangentAlone(Sequence):
    """Only the last step of h's cotangent is used, as if no loss depended on the others."""

    def cotangents(self, g_h: Tensor, g_c: Tensor) -> tuple[Steps, Tensor]:
        return [*(torch.zeros_like(g) for g in g_h[:-1]), *g_h[-1:]], g_c


@fault("gradient-subsets", "gradient of h0 is missing .* when only h0 requires grad")
class InitialStateWithWeightsOnly(Sequence):
    """The gradient of h0 is computed only together with that of the weights."""

    def wanted(self, gradients: tuple[Tensor, ...], needs: tuple[bool, ...]) -> tuple[Tensor | None, ...]:
        found = super().wanted(gradients, needs)
        return (*found[:3], found[3] if needs[1] else None, found[4])


@fault("sizes", r"gradient of weights was .*long", dtype=torch.bfloat16)
class WeightsAccumulatedTruncated(Sequence):
    """The sum over the steps is rounded towards zero at each step, which adds up in long sequences."""

    def d_weights(self, d_gates: Steps, X: Steps, states: Steps) -> Tensor:
        total = torch.zeros_like(super().d_weights(d_gates, X, states))
        for d, x in zip(d_gates, X, strict=True):
            exact = total.float() + (d.float().t() @ x.float())
            total = (exact * (1 - 2.0**-8)).to(total.dtype)
        return total
