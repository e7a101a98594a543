"""Write down the call that is about to be made, since a crash leaves nothing else behind."""

from __future__ import annotations

import os
from contextlib import suppress

#: The descriptor of a file without a name, which nobody has to remove; None if no process watches this one.
#: `harness.running.isolation` sets it.
FILE: int | None = None


def write_down(call: str, script: str) -> None:
    """Write `call` in one line, and a script that makes it again."""
    if FILE is None:
        return
    with suppress(OSError):  # an implementation may have closed it, which its own cell shows
        if os.fstat(FILE).st_nlink == 0:  # otherwise the number belongs to a file of the implementation by now
            os.ftruncate(FILE, 0)
            os.pwrite(FILE, f"{call}\n{script}".encode("utf-8", "replace"), 0)
