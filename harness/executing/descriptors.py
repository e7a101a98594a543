"""What a forked process has open."""

from __future__ import annotations

import os
from collections.abc import Set
from contextlib import suppress


def close_all_but(kept: Set[int]) -> None:
    """Close the descriptors of this process, but for the standard streams and these."""
    for descriptor in map(int, os.listdir("/dev/fd")):
        if descriptor > 2 and descriptor not in kept:
            with suppress(OSError):  # that of the listing
                os.close(descriptor)
