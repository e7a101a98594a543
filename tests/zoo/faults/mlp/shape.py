"""Sizes at the edge, and wrong arguments that are accepted or refused with an unhelpful message."""

import torch
import torch.nn.functional as F
from torch import Tensor

from tests.zoo.honest.mlp import Network
from tests.zoo.registry import fault


@fault("sizes", r"rows 65535\.\.69999 of 70000", defects=(10,))
class GridOfRows(Network):
    """gridDim.y is the batch, and rows beyond 65535 are never launched."""

    def finish(self, output: Tensor) -> Tensor:
        return torch.cat([output[:65535], torch.zeros_like(output[65535:])])


@fault(
    "sizes", "forward raised RuntimeError: CUDA error: invalid configuration argument.*no-(rows|hidden)", defects=(11,)
)
class EmptyGrid(Network):
    """A hidden layer without elements launches an empty grid."""

    def hidden(self, z: Tensor) -> Tensor:
        if z.numel() == 0:
            raise RuntimeError("CUDA error: invalid configuration argument")
        return super().hidden(z)


@fault("sizes", "forward raised ZeroDivisionError.*no-features")
class DividesByFeatures(Network):
    """A divisor is a size, which may be 0."""

    def pre_activations(self, input: Tensor, hidden_weights: Tensor, hidden_bias: Tensor) -> Tensor:
        _ = hidden_weights.numel() // input.shape[1]
        return super().pre_activations(input, hidden_weights, hidden_bias)


@fault("sizes", r"shape of output was \(\d,\), but should be \(1, \d\)")
class SqueezesOneOutput(Network):
    """A single row loses its dimension."""

    def finish(self, output: Tensor) -> Tensor:
        return output.squeeze(0)


@fault("forward-parity", "dtype of output was torch.float32, but should be torch.float16", dtype=torch.float16)
class ReturnsFloat32(Network):
    """Half inputs give single-precision outputs."""

    def finish(self, output: Tensor) -> Tensor:
        return output.float()


@fault("forward-parity", "forward raised NotImplementedError: .*BFloat16", dtype=torch.bfloat16, defects=(15,))
class Bfloat16NotDispatched(Network):
    """bfloat16 is not implemented."""

    def hidden(self, z: Tensor) -> Tensor:
        if z.dtype == torch.bfloat16:
            raise NotImplementedError("\"mlp_forward_cuda\" not implemented for 'BFloat16'")
        return super().hidden(z)


@fault("rejects-wrong-calls", "output_bias with size 1 .* was silently accepted", defects=(14,))
class OutputBiasExpanded(Network):
    """An output bias of one element is silently expanded to all outputs."""

    def __call__(self, *inputs: Tensor) -> Tensor:
        *others, output_weights, output_bias = inputs
        if isinstance(output_bias, Tensor) and output_bias.shape == (1,) and isinstance(output_weights, Tensor):
            output_bias = output_bias.expand(output_weights.shape[0])
        return super().__call__(*others, output_weights, output_bias)


@fault("rejects-wrong-calls", "hidden_weights transposed .* silently accepted", defects=(14,))
class EitherOrientation(Network):
    """Hidden weights are accepted transposed too, if they fit."""

    def __call__(self, input: Tensor, hidden_weights: Tensor, *others: Tensor) -> Tensor:
        tensors = isinstance(input, Tensor) and isinstance(hidden_weights, Tensor) and hidden_weights.dim() == 2
        if tensors and input.dim() == 2 and hidden_weights.shape[1] != input.shape[1] == hidden_weights.shape[0]:
            hidden_weights = hidden_weights.t()
        return super().__call__(input, hidden_weights, *others)


@fault("rejects-wrong-calls", "of dtype .* was silently accepted", defects=(14,))
class DtypesConverted(Network):
    """Every dtype is converted to that of the input."""

    def __call__(self, *inputs: Tensor) -> Tensor:
        dtype = inputs[0].dtype if isinstance(inputs[0], Tensor) else torch.float32
        return super().__call__(*(t.to(dtype) if isinstance(t, Tensor) else t for t in inputs))


@fault("error-messages", "should name the argument", defects=(14,))
class TorchsOwnErrors(Network):
    """Nothing is checked: the errors of torch's products name no argument."""

    def check(self, *inputs: Tensor) -> None:
        if any(not isinstance(t, Tensor) for t in inputs):
            raise TypeError("expected Tensor")
        F.linear(F.relu(F.linear(*inputs[:3])), *inputs[3:])
        super().check(*inputs)


@fault("error-messages", "should give the shape that was and the shape that should be", defects=(14,))
class NamesOnly(Network):
    """The message names every argument and no shape."""

    def check(self, *inputs: Tensor) -> None:
        try:
            super().check(*inputs)
        except Exception:
            names = "input, hidden_weights, hidden_bias, output_weights, output_bias"
            raise ValueError(f"one of {names} has a wrong shape or dtype") from None
