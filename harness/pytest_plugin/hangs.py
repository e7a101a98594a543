"""What pytest-timeout cannot end: a call in compiled code that does not return.

pytest-timeout ends a test by a signal, and Python looks at signals only between two of its own instructions. Half of
the limit later, the process is ended: a worker of pytest-xdist is replaced by another, and a run without workers leaves
a partial report that `--resume` continues.
"""

from __future__ import annotations

import faulthandler
import os
import threading
from collections.abc import Callable
from typing import Any

import pytest

#: The part of its limit that a test may go on after it: a call that returns in that time still has its own verdict.
_GRACE = 0.5
#: Seconds in which the hang is reported before the process is ended.
_TELLING = 5.0


class Hangs:
    """The plugin. `tell` gets the id of a test that hangs, in a thread, where that thread can run: a call that hangs
    may hold the lock of Python's interpreter. The process is ended anyway, by a thread that needs no interpreter.
    """

    def __init__(self, tell: Callable[[str], None] | None = None) -> None:
        self._tell = tell
        self._stderr = os.dup(2)  # pytest does not capture it while plugins are configured
        self._timer: threading.Timer | None = None

    @pytest.hookimpl(tryfirst=True, optionalhook=True)
    def pytest_timeout_set_timer(self, item: pytest.Item, settings: Any) -> None:
        """Wait beside the timer of pytest-timeout, unless a debugger is at work."""
        from pytest_timeout import is_debugging

        if not settings.disable_debugger_detection and is_debugging():
            return
        seconds = settings.timeout * (1 + _GRACE)
        faulthandler.dump_traceback_later(seconds + _TELLING, file=self._stderr, exit=True)
        self._timer = threading.Timer(seconds, self._report, (item.nodeid, seconds))
        self._timer.daemon = True
        self._timer.start()

    @pytest.hookimpl(tryfirst=True, optionalhook=True)
    def pytest_timeout_cancel_timer(self, item: pytest.Item) -> None:  # noqa: ARG002
        faulthandler.cancel_dump_traceback_later()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def pytest_unconfigure(self) -> None:
        os.close(self._stderr)

    def _report(self, test: str, seconds: float) -> None:
        says = f"\n{test} did not end in {seconds:g} s: a call in compiled code does not return. This process ends.\n"
        os.write(self._stderr, says.encode())
        if self._tell is not None:
            self._tell(test)
