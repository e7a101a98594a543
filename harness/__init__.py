"""The harness: it finds implementations, checks them against the contracts in `spec`, and writes a report.

from harness import verify
verify(my_function, operator="lltm")
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from harness.running.verify import verify

__all__ = ["verify"]


def __getattr__(name: str) -> Any:
    """`verify`, imported on first use: commands that judge nothing start without torch."""
    if name != "verify":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from harness.running.verify import verify

    return verify
