"""Workers of pytest-xdist share the GPUs of a machine: each starts with another one as `cuda:0`."""

from __future__ import annotations

import os
from collections.abc import Sequence

import torch

_VISIBLE = "CUDA_VISIBLE_DEVICES"


def take_turns() -> None:
    """In a worker, put the GPU of its turn first among those that CUDA shows; all others stay visible behind it.

    To be called before anything asks CUDA, which reads the variable once. Elsewhere, and where there are fewer than two
    GPUs, nothing is changed.
    """
    worker = os.environ.get("PYTEST_XDIST_WORKER", "")
    if not worker.startswith("gw"):
        return
    visible = os.environ.get(_VISIBLE)
    # Without the variable NVML counts, which does not start CUDA.
    devices = visible.split(",") if visible is not None else [str(n) for n in range(torch.cuda.device_count())]
    if len(devices) > 1:
        os.environ[_VISIBLE] = ",".join(in_turn(devices, int(worker.removeprefix("gw"))))


def in_turn(devices: Sequence[str], number: int) -> list[str]:
    """The devices, beginning with the one whose turn it is for the worker of that number.

    >>> in_turn(["0", "1", "2"], 4)
    ['1', '2', '0']
    """
    first = number % len(devices)
    return [*devices[first:], *devices[:first]]
