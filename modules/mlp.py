"""MLP as a torch.nn.Module that runs on any backend."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from backends.base import CPU, CUDA_EMULATED
from harness import discovery


class MLP(nn.Module):
    """A multilayer perceptron with one hidden layer of rectified linear units.

    Parameters: `hidden_weights` (hidden_size, input_features), `hidden_bias` (hidden_size,), `output_weights`
    (output_size, hidden_size) and `output_bias` (output_size,). They are the same for every backend, so a state dict
    written with one loads with another.

    `backend` is a backend's public name (`python-autograd`, `aten-cpp`, ...); a name that is none raises UnknownName.
    Its function is looked up, and built if need be, at the first call on a device, which raises Unavailable where the
    backend does not run on it. Make one such call before `torch.compile`, which cannot trace the look-up.
    With `emulated=True`, a backend that has no CPU code of its own runs its CUDA sources on CPU tensors, thread by
    thread; this is slow, and never done unasked.
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
        super().__init__()
        devices = discovery.backend(backend).backend.devices  # raises UnknownName, here rather than at the first call
        self.input_features = input_features
        self.hidden_size = hidden_size
        self.output_size = output_size
        self.backend = backend
        self.emulated = emulated and CPU not in devices
        self._functions: dict[str, Callable[..., Tensor]] = {}
        self.hidden_weights = nn.Parameter(torch.empty(hidden_size, input_features, device=device, dtype=dtype))
        self.hidden_bias = nn.Parameter(torch.empty(hidden_size, device=device, dtype=dtype))
        self.output_weights = nn.Parameter(torch.empty(output_size, hidden_size, device=device, dtype=dtype))
        self.output_bias = nn.Parameter(torch.empty(output_size, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw each layer's parameters uniformly from +-1/sqrt(its inputs), as torch.nn.Linear does."""
        for weights, bias in ((self.hidden_weights, self.hidden_bias), (self.output_weights, self.output_bias)):
            inputs = weights.shape[1]
            bound = inputs**-0.5 if inputs > 0 else 0.0
            nn.init.uniform_(weights, -bound, bound)
            nn.init.uniform_(bias, -bound, bound)

    def forward(self, input: Tensor) -> Tensor:
        """The output, (batch, output_size); `input` is (batch, input_features)."""
        device = CUDA_EMULATED if self.emulated and input.device.type == CPU else input.device.type
        if device not in self._functions:
            self._functions[device] = discovery.load_function("mlp", self.backend, device)
        function = self._functions[device]
        return function(input, self.hidden_weights, self.hidden_bias, self.output_weights, self.output_bias)

    def __getstate__(self) -> dict[str, Any]:
        """What pickle and deepcopy take: all but the loaded functions, which the copy finds anew."""
        return {**self.__dict__, "_functions": {}}

    def extra_repr(self) -> str:
        """The arguments of the constructor, for print()."""
        emulated = ", emulated=True" if self.emulated else ""
        sizes = f"{self.input_features}, {self.hidden_size}, {self.output_size}"
        return f"{sizes}, backend={self.backend!r}{emulated}"
