"""The base of the modules: a backend given by name, whose functions are looked up at the first call on a device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from backends.base import CPU, SIMULATED
from harness import discovery


class OnBackend(nn.Module):
    """A module whose operator runs on any backend.

    `backend` is a backend's public name (`python-autograd`, `aten-cpp`, ...). An unknown name raises UnknownName. Its
    function is looked up, and built if necessary, at the first call on a device. That call raises Unavailable if the
    backend does not run on the device. Make one such call before `torch.compile`, which cannot trace the look-up.
    With `emulated=True`, a backend that has no CPU code of its own runs its kernels on CPU tensors, on one of the
    devices `SIMULATED`. This is slow, so it never happens by default.
    """

    def __init__(self, backend: str, emulated: bool) -> None:
        super().__init__()
        devices = discovery.backend(backend).backend.devices  # raises UnknownName here, not at the first call
        self.backend = backend
        self.emulated = emulated and CPU not in devices
        self._functions: dict[str, Callable[..., Any]] = {}

    def function(self, operator: str, device: torch.device) -> Callable[..., Any]:
        """The backend's implementation of `operator` for tensors on `device`. Raises Unavailable or Broken."""
        kind = device.type
        if self.emulated and kind == CPU:
            devices = discovery.backend(self.backend).backend.devices
            kind = next((each for each in devices if each in SIMULATED), kind)
        if kind not in self._functions:
            self._functions[kind] = discovery.load_function(operator, self.backend, kind)
        return self._functions[kind]

    def __getstate__(self) -> dict[str, Any]:
        """The state for pickle and deepcopy: all but the loaded functions, which the copy looks up again."""
        return {**self.__dict__, "_functions": {}}

    def where(self) -> str:
        """The backend as print() shows it, after an operator's own arguments."""
        return f"backend={self.backend!r}{', emulated=True' if self.emulated else ''}"
