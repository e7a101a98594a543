"""Right at ordinary values, and wrong at the edges: NaN, infinities, overflow, denormals."""

import torch
import torch.nn.functional as F
from torch import Tensor

from tests.zoo.honest.mlp import Network
from tests.zoo.registry import fault


@fault("forward-parity", "not NaN where the exact value is NaN[^$]*non-finite")
class NaNSwallowed(Network):
    """relu as a selection of what is above 0: of NaN it makes 0, and a network that diverged looks healthy."""

    def hidden(self, z: Tensor) -> Tensor:
        return torch.where(z > 0, z, torch.zeros_like(z))


@fault("forward-parity", "NaN or infinite where the exact value is finite[^$]*non-finite")
class NaNSpreads(Network):
    """The pre-activations are shifted by the largest of the batch and back: one row's NaN reaches all."""

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
    """The pre-activations of a batch of one are centred, as a batch normalisation would."""

    def pre_activations(self, input: Tensor, hidden_weights: Tensor, hidden_bias: Tensor) -> Tensor:
        z = super().pre_activations(input, hidden_weights, hidden_bias)
        return z - z.mean(0, keepdim=True) if len(z) == 1 else z
