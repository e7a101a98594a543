"""One call affects another, or a change between forward and backward goes unnoticed."""

import torch
from torch import Tensor

from tests.zoo.honest.mlp import Network
from tests.zoo.registry import fault


@fault(
    "repeated-backward",
    "output_weights was changed in place between forward and backward, which raised nothing[^$]*at the new output_we",
)
class WeightsSavedWithoutVersion(Network):
    """Output weights are saved as .data, which the version counter does not cover: backward uses changed ones."""

    def saved(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        input, hidden_weights, hidden_bias, output_weights = inputs
        return input, hidden_weights, hidden_bias, output_weights.data


@fault("repeated-backward", "second backward through one graph .*: gradient of output_bias was")
class BackwardAccumulates(Network):
    """Backward adds into a buffer that forward cleared."""

    def saved(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        self._total = torch.zeros(len(inputs[3]), dtype=inputs[3].dtype)
        return super().saved(*inputs)

    def d_output_bias(self, g: Tensor) -> Tensor:
        self._total = self._total + super().d_output_bias(g)
        return self._total


@fault("repeated-backward", "after the inputs were updated in place, under no_grad: gradient of input was")
class MaskKeptBySize(Network):
    """The mask for each size is computed once, in the first backward with that many rows and units."""

    def __init__(self) -> None:
        self._masks: dict[object, Tensor] = {}

    def d_z(self, d_hidden: Tensor, z: Tensor) -> Tensor:
        return d_hidden * self._masks.setdefault(z.shape, z > 0)


@fault("concurrent-threads", "in thread . of 4 .* though right when it called alone: .* was")
class HiddenOfLastForward(Network):
    """Backward uses the pre-activations of the last forward, of whichever thread."""

    def pre_activations(self, input: Tensor, hidden_weights: Tensor, hidden_bias: Tensor) -> Tensor:
        if self._in_forward or self._z.shape[0] != len(input):
            self._z = super().pre_activations(input, hidden_weights, hidden_bias)
        return self._z

    def __call__(self, *inputs: Tensor) -> Tensor:
        self._in_forward = True
        output = super().__call__(*inputs)
        self._in_forward = False
        return output


@fault("uninitialised-memory", "with new memory filled with NaN, .*: output was nan")
class TailNotWritten(Network):
    """Hidden units behind the last full vector of four are never written; old memory may hold right values."""

    def hidden(self, z: Tensor) -> Tensor:
        held = torch.empty_like(z)
        edge = z.shape[1] // 4 * 4
        hidden = super().hidden(z)
        # As if the allocator returned memory that still holds the right values.
        tail = torch.where(held[:, edge:].isnan(), held[:, edge:], hidden[:, edge:])
        return torch.cat([hidden[:, :edge], tail], dim=1)


@fault("determinism", "output was .* in call 2, but should be .* as in the first call, bit for bit")
class DropoutLeftOn(Network):
    """Half of the hidden units are dropped, and the others are scaled."""

    def hidden(self, z: Tensor) -> Tensor:
        hidden = super().hidden(z)
        return hidden if type(z) is not Tensor else torch.nn.functional.dropout(hidden, 0.5)


@fault("inference-modes", "under (inference_mode|no_grad): output was .*, but should be")
class SparseForInference(Network):
    """Without grad, small hidden values are set to 0."""

    def hidden(self, z: Tensor) -> Tensor:
        hidden = super().hidden(z)
        return hidden if self._trains else hidden * (hidden > 0.1)

    def __call__(self, *inputs: Tensor) -> Tensor:
        self._trains = torch.is_grad_enabled()
        return super().__call__(*inputs)
