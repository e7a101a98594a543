"""The process of a candidate that is timed, in this process."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from harness.executing.timing import Header, Tensors, Timing


class Here:
    """The process of a candidate, in this process. Requests in `slow` take so many seconds more."""

    def __init__(self, function: Callable[..., Any] | None, slow: Mapping[str, float] | None = None) -> None:
        self.timing, self.function, self.slow = Timing(), function, slow or {}
        #: Added to the processor time of each request, and between two of them.
        self.busy = self.idle = 0.0
        self._cpu = 0.0

    def ask(self, header: Header, tensors: Tensors, *, seconds: float) -> tuple[Header, Tensors]:
        self._cpu += self.busy
        time.sleep(self.slow.get(header["do"], 0))
        try:
            return self.timing.answer(self.function, header, tensors)
        except (TypeError, RuntimeError) as error:
            return {"error": {"kind": type(error).__name__, "text": str(error)}}, {}

    def cpu_seconds(self) -> float:
        self._cpu += self.idle
        return self._cpu
