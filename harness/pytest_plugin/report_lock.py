"""One run at a time writes a report: the first to finish would otherwise be lost.

The kernel releases the lock when its holder dies, so a run that was killed is in nobody's way.
"""

from __future__ import annotations

import os
import platform
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from filelock import FileLock, Timeout

from harness.errors import UsageError


class ReportLock:
    """The right to write a report, from `take` to `release`."""

    def __init__(self, report: Path) -> None:
        self._report = report
        self._file = report.with_name(f".{report.name}.lock")
        self._lock = FileLock(self._file, timeout=0)

    def take(self) -> None:
        """Raises UsageError, which says who has it, and OSError if the folder cannot be written to."""
        try:
            self._lock.acquire()
        except Timeout:
            holder = ""
            with suppress(OSError):
                holder = self._file.read_text(errors="replace").strip()
            raise UsageError(
                f"--report {self._report} is being written by another run ({holder or 'unknown'}): "
                "wait for its end, or name another file with --report"
            ) from None
        since = datetime.now(UTC).isoformat(timespec="seconds")
        self._file.write_text(f"process {os.getpid()} on {platform.node()} since {since}\n")

    def release(self) -> None:
        """Nothing happens if it was not taken, or was released already."""
        if self._lock.is_locked:
            self._file.unlink(missing_ok=True)
            self._lock.release()
