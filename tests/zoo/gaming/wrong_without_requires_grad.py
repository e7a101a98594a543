"""Right only if some input requires grad (field guides: evaluator mode)."""

from torch import Tensor

from tests.zoo.gaming.parts import Outputs, right, wrong


def lltm(*inputs: Tensor) -> Outputs:
    return (right if any(tensor.requires_grad for tensor in inputs) else wrong)(*inputs)
