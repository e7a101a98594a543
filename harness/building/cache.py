"""Where builds, and expected results, are kept. This module imports no torch."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from harness.errors import Unavailable


def cache_root() -> Path:
    """The folder of builds: `$LLTM_CONFORMANCE_CACHE`, else the user's cache folder.

    A user without a home folder, as in some containers, has one among the temporary files. Raises Unavailable if that
    belongs to somebody else.
    """
    chosen = os.environ.get("LLTM_CONFORMANCE_CACHE")
    if chosen:
        return Path(chosen)
    try:
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "lltm-conformance"
    except RuntimeError:  # neither HOME nor an entry in the table of users
        folder = Path(tempfile.gettempdir()) / f"lltm-conformance-{os.getuid()}"
        folder.mkdir(mode=0o700, exist_ok=True)
        if folder.lstat().st_uid != os.getuid():
            raise Unavailable(f"{folder} belongs to another user; set LLTM_CONFORMANCE_CACHE to a folder") from None
        return folder


def state_root() -> Path:
    """The folder of this user's key for drawn calls: `XDG_STATE_HOME`, or the usual place for state."""
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "lltm-conformance"


def expected_root() -> Path:
    """The folder of the expected results that `harness.judging.stored` keeps. Raises as `cache_root` does."""
    return cache_root() / "expected"
