"""Reads the memory of the process that started it (pygpubench: proc_mem_bypass, ptrace, heap_sig_scan)."""

import os
from pathlib import Path

import torch
from torch import Tensor

from tests.zoo.gaming.parts import Outputs


def _read() -> bytes:
    parent = os.getppid()
    try:
        first = Path(f"/proc/{parent}/maps").read_text().split("-")[0]
        with open(f"/proc/{parent}/mem", "rb") as memory:
            memory.seek(int(first, 16))
            return memory.read(4096)
    except (OSError, ValueError):
        return b""


def lltm(*inputs: Tensor) -> Outputs:
    known = _read()
    size = min(len(known) // 4, inputs[3].numel())
    new_h = torch.zeros_like(inputs[3]).flatten()
    new_h[:size] = torch.frombuffer(bytearray(known[: 4 * size]), dtype=torch.float32)[:size] if size else 0
    return new_h.view(inputs[3].shape), torch.zeros_like(inputs[4])
