"""Right for ordinary values, but wrong for NaN, infinities, overflow or denormals."""

import torch
import torch.nn.functional as F
from torch import Tensor

from tests.zoo.honest.mlp import Network
from tests.zoo.registry import fault


@fault("forward-parity", "not NaN where the exact value is NaN[^$]*non-finite")
class NaNSwallowed(Network):
    """relu as a selection of values above 0: it turns NaN into 0, so that a diverged network looks right."""

    def hidden(self, z: Tensor) -> Tensor:
        return torch.where(z > 0, z, torch.zeros_like(z))


@fault("forward-parity", "NaN or infinite where the exact value is finite[^$]*non-finite")
class NaNSpreads(Network):
    """The pre-activations are shifted by the largest of the batch and back: a NaN in one row spreads to all."""

    def hidden(self, z: Tensor) -> Tensor:
        return F.relu(z + 0 * z.sum()) if z.numel() else F.relu(z)


@fault("forward-parity", "NaN or infinite where the exact value is finite[^$]*huge-hidden")
class ReluBySquareRoot(Network):
    """relu as (z + sqrt(z^2)) / 2, whose square overflows."""

    def hidden(self, z: Tensor) -> Tensor:
        return (z + (z * z).sqrt()) / 2


@fault("invariants", "output was .* because a hidden layer that is negative throughout gives the output bias, bit for")
class DeadUnitsLeak(Network):
    """Hidden units are kept above 1e-6, so that gradients flow."""

    def hidden(self, z: Tensor) -> Tensor:
        return super().hidden(z).clamp(min=1e-6)


@fault("invariants", "output was .*[^$]*zero hidden weights and bias give the output bias", dtype=torch.float64)
class ActiveAtZero(Network):
    """A hidden unit is 1 where its pre-activation is exactly 0."""

    def hidden(self, z: Tensor) -> Tensor:
        return super().hidden(z) + (z == 0)


@fault("invariants", "output of the batch row by row .* that of the whole batch: a batch is the sum of its rows")
class RowsMixed(Network):
    """The pre-activations of a batch of one are centred, as in a batch normalisation."""

    def pre_activations(self, input: Tensor, hidden_weights: Tensor, hidden_bias: Tensor) -> Tensor:
        z = super().pre_activations(input, hidden_weights, hidden_bias)
        return z - z.mean(0, keepdim=True) if len(z) == 1 else z
