"""Pin a measurement to processors: as many as it has threads, and the same ones each time.

Without pinning, the system moves a process from one processor to another. Processors differ in speed for a while,
because of the load on their neighbours, which on a rented machine may be another user's. This difference would
appear in the comparison.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator


def pin(threads: int) -> None:
    """Keep the calling thread, and those that it starts, on the last `threads` processors that it may use.

    The first ones often handle the interrupts of the system. Does nothing on a system without affinity.
    """
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-threads:])


@contextlib.contextmanager
def pinned(threads: int) -> Iterator[None]:
    """`pin`, until the end of the block."""
    before = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else None
    pin(threads)
    try:
        yield
    finally:
        if before is not None:
            os.sched_setaffinity(0, before)
