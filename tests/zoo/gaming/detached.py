"""Returns values without a graph that claim to require grad (own trial)."""

from torch import Tensor

from tests.zoo.gaming.parts import Outputs, right


def lltm(*inputs: Tensor) -> Outputs:
    new_h, new_cell = right(*inputs)
    return new_h.detach().requires_grad_(), new_cell.detach().requires_grad_()
