"""Four CUDA devices for fake tensors, in a process that has none and that never computes on one.

PyTorch asks the guard of a device for its streams when it builds a graph of autograd. fake_cuda.cpp is such a guard.
The functions of torch.cuda that tell and set the current device are answered by it. `torch.cuda.is_available` stays
false: PyTorch would open a device.
"""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

import torch

from backends.base import CPU, CompiledOperator
from harness.building import build

_GUARD = CompiledOperator("guard", "fake_cuda", (Path(__file__).with_suffix(".cpp"),), flags=("-O1",))


def built() -> Path:
    """The library of the guard. Raises Unavailable without a compiler."""
    return build.build(_GUARD, CPU)


def install(library: Path) -> None:
    """For the rest of this process, which must not have used CUDA before."""
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    guard = ctypes.CDLL(str(library))

    def device_count() -> int:
        return int(guard.fake_cuda_count())

    def current_device() -> int:
        return int(guard.fake_cuda_current())

    def exchange(device: int) -> int:
        was = current_device()
        if device >= 0:
            guard.fake_cuda_set(device)
        return was

    def set_device(device: torch.device | str | int | None) -> None:
        index = device if isinstance(device, int | None) else torch.device(device).index
        exchange(-1 if index is None else index)

    torch.cuda.device_count = device_count
    torch.cuda.current_device = current_device
    torch.cuda.set_device = set_device
    torch.cuda._exchange_device = torch.cuda._maybe_exchange_device = exchange
    torch.cuda.is_initialized = lambda: True  # so that "cuda" without an index is the current device
