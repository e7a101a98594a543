"""The call that is about to be made, written down first: a crash takes everything else with it."""

from __future__ import annotations

from pathlib import Path

#: The file of this process; empty where nobody watches it. `harness.running.isolation` sets it.
FILE = ""


def write_down(call: str, script: str) -> None:
    """`call` in one line, and a script that makes it again."""
    if FILE:
        Path(FILE).write_text(f"{call}\n{script}")
