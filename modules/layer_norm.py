"""LayerNorm as a torch.nn.Module that runs on any backend."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from modules.base import OnBackend


class LayerNorm(OnBackend):
    """Normalises over the last dimensions, with the arguments and parameters of torch.nn.LayerNorm.

    Parameters: `weight` and `bias`, both of shape `normalized_shape`. Both are None if `elementwise_affine` is False;
    `bias` is None if the argument `bias` is False. They are the same for every backend, and for torch.nn.LayerNorm, so
    a state dict of one loads into another.

    `backend` and `emulated` are those of `modules.base.OnBackend`.
    """

    weight: nn.Parameter | None
    bias: nn.Parameter | None

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        backend: str = "python-autograd",
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
        emulated: bool = False,
    ) -> None:
        super().__init__(backend, emulated)
        self.normalized_shape = (
            (normalized_shape,) if isinstance(normalized_shape, int) else tuple(int(size) for size in normalized_shape)
        )
        self.eps = eps

        def parameter(is_there: bool) -> nn.Parameter | None:
            return nn.Parameter(torch.empty(self.normalized_shape, device=device, dtype=dtype)) if is_there else None

        self.weight = parameter(elementwise_affine)
        self.bias = parameter(elementwise_affine and bias)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set the weights to 1 and the bias to 0, as torch.nn.LayerNorm does."""
        if self.weight is not None:
            nn.init.ones_(self.weight)
        if self.bias is not None:
            nn.init.zeros_(self.bias)

    def forward(self, input: Tensor) -> Tensor:
        """The normalised input, of the shape of `input`: (*, *normalized_shape)."""
        function = self.function("layer_norm", input.device)
        output: Tensor = function(input, self.normalized_shape, self.weight, self.bias, self.eps)
        return output

    def extra_repr(self) -> str:
        """The arguments of the constructor, for print()."""
        affine = "" if self.weight is not None else ", elementwise_affine=False"
        return f"{self.normalized_shape}, eps={self.eps}{affine}, {self.where()}"
