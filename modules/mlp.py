"""MLP as a torch.nn.Module that runs on any backend."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from modules.base import OnBackend


class MLP(OnBackend):
    """A multilayer perceptron with one hidden layer of rectified linear units.

    Parameters: `hidden_weights` (hidden_size, input_features), `hidden_bias` (hidden_size,), `output_weights`
    (output_size, hidden_size) and `output_bias` (output_size,). They are the same for every backend, so a state dict of
    one loads into another.

    `backend` and `emulated` are those of `modules.base.OnBackend`.
    """

    def __init__(
        self,
        input_features: int,
        hidden_size: int,
        output_size: int,
        backend: str = "python-autograd",
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
        emulated: bool = False,
    ) -> None:
        super().__init__(backend, emulated)
        self.input_features = input_features
        self.hidden_size = hidden_size
        self.output_size = output_size
        self.hidden_weights = nn.Parameter(torch.empty(hidden_size, input_features, device=device, dtype=dtype))
        self.hidden_bias = nn.Parameter(torch.empty(hidden_size, device=device, dtype=dtype))
        self.output_weights = nn.Parameter(torch.empty(output_size, hidden_size, device=device, dtype=dtype))
        self.output_bias = nn.Parameter(torch.empty(output_size, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the parameters of each layer uniformly from +-1/sqrt(its inputs), as torch.nn.Linear does."""
        for weights, bias in ((self.hidden_weights, self.hidden_bias), (self.output_weights, self.output_bias)):
            inputs = weights.shape[1]
            bound = inputs**-0.5 if inputs > 0 else 0.0
            nn.init.uniform_(weights, -bound, bound)
            nn.init.uniform_(bias, -bound, bound)

    def forward(self, input: Tensor) -> Tensor:
        """The output, (batch, output_size); `input` is (batch, input_features)."""
        parameters = (self.hidden_weights, self.hidden_bias, self.output_weights, self.output_bias)
        output: Tensor = self.function("mlp", input.device)(input, *parameters)
        return output

    def extra_repr(self) -> str:
        """The arguments of the constructor, for print()."""
        sizes = f"{self.input_features}, {self.hidden_size}, {self.output_size}"
        return f"{sizes}, {self.where()}"
