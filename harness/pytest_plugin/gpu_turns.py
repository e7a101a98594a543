"""Workers of pytest-xdist share the GPUs of a machine: `cuda:0` is a different GPU in each."""

from __future__ import annotations

import os
from collections.abc import Sequence

import torch

_VISIBLE = "CUDA_VISIBLE_DEVICES"


def take_turns() -> None:
    """In a worker, make its GPU the first of the visible ones; all others stay visible after it.

    Call it before anything uses CUDA, which reads the variable once. Outside a worker, and with fewer than two GPUs,
    it changes nothing.
    """
    worker = os.environ.get("PYTEST_XDIST_WORKER", "")
    if not worker.startswith("gw"):
        return
    visible = os.environ.get(_VISIBLE)
    # Without the variable, NVML counts the GPUs: it does not initialise CUDA.
    devices = visible.split(",") if visible is not None else [str(n) for n in range(torch.cuda.device_count())]
    if len(devices) > 1:
        os.environ[_VISIBLE] = ",".join(in_turn(devices, int(worker.removeprefix("gw"))))


def in_turn(devices: Sequence[str], number: int) -> list[str]:
    """The devices, rotated so that the list begins with the GPU of the worker of that number.

    >>> in_turn(["0", "1", "2"], 4)
    ['1', '2', '0']
    """
    first = number % len(devices)
    return [*devices[first:], *devices[:first]]
