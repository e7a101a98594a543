"""Leaves the processors that it was given, and starts more threads."""

import os
from typing import Any

import torch

from spec.lltm import OPERATOR


def more_processors(*inputs: Any) -> Any:
    """Right, with the work of two threads on all processors."""
    os.sched_setaffinity(0, range(os.cpu_count() or 1))
    torch.set_num_threads(2)
    for _ in range(3):
        torch.ones(64, 64).tanh().sum()
    return OPERATOR.forward(*inputs)
