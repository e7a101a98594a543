"""The processors on which a measurement runs: as many as it has threads, and the same ones each time.

Left to the system, a process stays on one processor for a while and then on another, and one of them is slower for as
long: what its neighbour does, which on a rented machine is somebody else, would be a difference between what is
compared.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator


def pin(threads: int) -> None:
    """The calling thread, and those that it starts, stay on the last `threads` processors that it may use.

    Not the first ones, which the interrupts of the system often have. Where a system knows no such thing nothing is
    done.
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
