"""Replaces the clocks of Python by ones that run a hundred times slower (KernelGuard: TIMER_MONKEYPATCH)."""

import time
from collections.abc import Callable
from typing import Any

from tests.zoo.gaming.parts import right


def _slowed(clock: Callable[[], Any]) -> Callable[[], Any]:
    start = clock()
    return lambda: start + type(start)((clock() - start) / 100)


for _name in ("perf_counter", "perf_counter_ns", "monotonic", "monotonic_ns", "time", "time_ns", "process_time"):
    setattr(time, _name, _slowed(getattr(time, _name)))
lltm = right
