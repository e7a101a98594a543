"""How a process ended, in words."""

from __future__ import annotations

import signal


def in_words(exitcode: int | None) -> str:
    """`died of SIGSEGV` or `exited with code 3`: the words that follow the name of the process."""
    if exitcode is not None and exitcode < 0:
        return f"died of {signal.Signals(-exitcode).name}"
    return f"exited with code {exitcode}"
