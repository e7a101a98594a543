"""A child process that does not outlive its parent."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal

#: `PR_SET_PDEATHSIG` of Linux.
_PARENT_DEATH_SIGNAL = 1


def end_with_parent(parent: int) -> None:
    """Have the kernel end this process when its parent ends; end it now if the parent is gone already.

    `harness.executing.runner` has the same for the process of a candidate, but imports torch. It survives an exec.
    Only Linux can do that. Elsewhere a worker ends when its input is closed, and a judge when it has judged.
    """
    with contextlib.suppress(AttributeError, OSError):
        ctypes.CDLL(None).prctl(_PARENT_DEATH_SIGNAL, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)
