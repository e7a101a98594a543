"""A problem in the format of KernelBench."""

import torch
from torch import nn


class Model(nn.Module):
    """Softmax over the last dimension."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch, width) to (batch, width)."""
        return torch.softmax(x, dim=1)


def get_inputs() -> list[torch.Tensor]:
    """The arguments of forward."""
    return [torch.randn(16, 16384)]


def get_init_inputs() -> list[int]:
    """Those of the class."""
    return []
