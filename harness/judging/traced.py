"""Write down the call that is about to be made, since a crash leaves nothing else behind."""

from __future__ import annotations

from pathlib import Path

#: The file of this process; empty if no process watches it. `harness.running.isolation` sets it.
FILE = ""


def write_down(call: str, script: str) -> None:
    """Write `call` in one line, and a script that makes it again."""
    if FILE:
        Path(FILE).write_text(f"{call}\n{script}")
