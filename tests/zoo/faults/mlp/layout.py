"""Memory is read at addresses other than those of the strides."""

import torch
from torch import Tensor

from tests.zoo.honest.mlp import Network
from tests.zoo.registry import fault


def read_densely(tensor: Tensor) -> Tensor:
    """The values that a kernel reads if it takes the pointer and assumes that the tensor is contiguous."""
    reach = tensor.untyped_storage().nbytes() // tensor.element_size() - tensor.storage_offset()
    flat = tensor.detach().as_strided((reach,), (1,))
    return flat[torch.arange(tensor.numel()) % reach].view(tensor.shape)


@fault("layouts", "the strides of hidden_weights are ignored")
class StridesOfWeightsIgnored(Network):
    """hidden_weights is read as if it were contiguous."""

    def pre_activations(self, input: Tensor, hidden_weights: Tensor, hidden_bias: Tensor) -> Tensor:
        return super().pre_activations(input, read_densely(hidden_weights), hidden_bias)


@fault("layouts", "the strides of hidden_bias are ignored|hidden_bias strided")
class BiasStrideIgnored(Network):
    """hidden_bias is read as if its elements were adjacent."""

    def pre_activations(self, input: Tensor, hidden_weights: Tensor, hidden_bias: Tensor) -> Tensor:
        return super().pre_activations(input, hidden_weights, read_densely(hidden_bias))


@fault("layouts", "the strides of the cotangent of output are ignored", defects=(7,))
class ExpandedCotangentRead(Network):
    """The cotangent is read densely: `.sum().backward()` sends one number with stride 0."""

    def cotangent(self, g: Tensor) -> Tensor:
        reach = g.untyped_storage().nbytes() // g.element_size() - g.storage_offset()
        if reach < g.numel():  # beyond the one number there is other memory; here, zeros
            return torch.cat([g.detach().as_strided((reach,), (1,)), g.new_zeros(g.numel() - reach)]).view(g.shape)
        return read_densely(g)


@fault("wide-offsets", "output was", defects=(12,))
class OffsetsOf32Bits(Network):
    """Row offsets of the input are computed in 32 bits and wrap around."""

    def pre_activations(self, input: Tensor, hidden_weights: Tensor, hidden_bias: Tensor) -> Tensor:
        rows = []
        for row in range(input.shape[0]):
            offset = (row * input.stride(0) + 2**31) % 2**32 - 2**31
            flat = input.as_strided((input.shape[1],), (input.stride(1),), max(offset, 0))
            rows.append(flat if offset >= 0 else torch.zeros_like(flat))
        return super().pre_activations(torch.stack(rows), hidden_weights, hidden_bias)
