"""A process that does not outlive the one that started it. Imports nothing but the standard library."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal

#: `PR_SET_PDEATHSIG` of Linux.
_PARENT_DEATH_SIGNAL = 1


def end_with_parent(parent: int | None = None) -> None:
    """Have the kernel end this process if its parent dies, even in the middle of a call; an exec does not change that.

    With the id of the `parent`, end now if it is gone already. Inside a sandbox ids are others, so none is given.
    Linux alone can do that. Elsewhere a process ends when it finds its connection or its input closed.
    """
    with contextlib.suppress(AttributeError, OSError):
        ctypes.CDLL(None).prctl(_PARENT_DEATH_SIGNAL, signal.SIGKILL)
    if parent is not None and os.getppid() != parent:
        os._exit(1)
