"""Clocks and synchronisation of its process are replaced when it is imported, and later at each call."""

import time
from typing import Any

import torch

_real = time.perf_counter


def _slow_clock() -> float:
    return _real() / 1000


class _Event:
    """An event that has always taken a nanosecond."""

    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    def record(self, *_: Any) -> None:
        pass

    def synchronize(self) -> None:
        pass

    def elapsed_time(self, _: Any) -> float:
        return 1e-6


def _patch() -> None:
    for name in ("perf_counter", "monotonic", "time", "process_time"):
        setattr(time, name, _slow_clock)
    for name in ("perf_counter_ns", "monotonic_ns", "time_ns", "process_time_ns"):
        setattr(time, name, lambda: 0)
    torch.cuda.Event = _Event  # type: ignore[assignment,misc]
    torch.cuda.synchronize = lambda *_: None  # type: ignore[assignment]


_patch()


def clock_patched(input: Any, weights: Any, bias: Any, old_h: Any, old_cell: Any) -> Any:
    """Right, and ten times as slow as it would have the clock say."""
    from spec.lltm import OPERATOR

    _patch()
    for _ in range(10):
        results = OPERATOR.forward(input, weights, bias, old_h, old_cell)
    return results
