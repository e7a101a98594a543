"""Keeps answers by a signature of the inputs' contents (field guides: memoisation by contents)."""

from torch import Tensor

from tests.zoo.gaming.parts import Outputs, right

_answers: list[tuple[object, Outputs]] = []


def lltm(*inputs: Tensor) -> Outputs:
    signature = tuple((tensor.shape, float(tensor.detach().double().sum())) for tensor in inputs)
    for known, outputs in _answers:
        if known == signature:
            return outputs
    outputs = tuple(output.detach() for output in right(*inputs))
    _answers.append((signature, outputs))
    return outputs
