"""LayerNorm as a torch.nn.Module that runs on any backend."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from backends.base import CPU, CUDA_EMULATED
from harness import discovery


class LayerNorm(nn.Module):
    """Normalises over the last dimensions, with the arguments and parameters of torch.nn.LayerNorm.

    Parameters: `weight` and `bias`, both of shape `normalized_shape`, or None where `elementwise_affine` is False;
    `bias` is None too where that argument is False. They are the same for every backend, and for torch.nn.LayerNorm, so
    a state dict written with one loads with another.

    `backend` is a backend's public name (`python-autograd`, `aten-cpp`, ...); a name that is none raises UnknownName.
    Its function is looked up, and built if need be, at the first call on a device, which raises Unavailable where the
    backend does not run on it. Make one such call before `torch.compile`, which cannot trace the look-up.
    With `emulated=True`, a backend that has no CPU code of its own runs its CUDA sources on CPU tensors, thread by
    thread; this is slow, and never done unasked.
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
        super().__init__()
        devices = discovery.backend(backend).backend.devices  # raises UnknownName, here rather than at the first call
        self.normalized_shape = (
            (normalized_shape,) if isinstance(normalized_shape, int) else tuple(int(size) for size in normalized_shape)
        )
        self.eps = eps
        self.backend = backend
        self.emulated = emulated and CPU not in devices
        self._functions: dict[str, Callable[..., Tensor]] = {}

        def parameter(is_there: bool) -> nn.Parameter | None:
            return nn.Parameter(torch.empty(self.normalized_shape, device=device, dtype=dtype)) if is_there else None

        self.weight = parameter(elementwise_affine)
        self.bias = parameter(elementwise_affine and bias)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Weights of 1 and a bias of 0, as torch.nn.LayerNorm has them."""
        if self.weight is not None:
            nn.init.ones_(self.weight)
        if self.bias is not None:
            nn.init.zeros_(self.bias)

    def forward(self, input: Tensor) -> Tensor:
        """The normalised input, of its shape, (*, *normalized_shape)."""
        device = CUDA_EMULATED if self.emulated and input.device.type == CPU else input.device.type
        if device not in self._functions:
            self._functions[device] = discovery.load_function("layer_norm", self.backend, device)
        return self._functions[device](input, self.normalized_shape, self.weight, self.bias, self.eps)

    def __getstate__(self) -> dict[str, Any]:
        """What pickle and deepcopy take: all but the loaded functions, which the copy finds anew."""
        return {**self.__dict__, "_functions": {}}

    def extra_repr(self) -> str:
        """The arguments of the constructor, for print()."""
        affine = "" if self.weight is not None else ", elementwise_affine=False"
        emulated = ", emulated=True" if self.emulated else ""
        return f"{self.normalized_shape}, eps={self.eps}{affine}, backend={self.backend!r}{emulated}"
