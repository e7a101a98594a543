"""MLP: the contract's own forward under torch.compile."""

from __future__ import annotations

from torch import Tensor

from backends.autocast import by_rule
from backends.base import PythonFunction, check_arguments
from backends.torch_compile._compiled import compiled
from spec.mlp import OPERATOR, forward


@by_rule(OPERATOR)
def mlp(
    input: Tensor, hidden_weights: Tensor, hidden_bias: Tensor, output_weights: Tensor, output_bias: Tensor
) -> Tensor:
    """The output, (batch, output_size)."""
    check_arguments(OPERATOR, input, hidden_weights, hidden_bias, output_weights, output_bias)
    result: tuple[Tensor] = compiled(forward)(input, hidden_weights, hidden_bias, output_weights, output_bias)
    return result[0]


IMPLEMENTATION = PythonFunction(mlp)
