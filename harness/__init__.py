"""The court: finds implementations, judges them by the law in `spec`, and writes down what it saw.

from harness import verify
verify(my_function, operator="lltm")
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from harness.running.verify import verify

__all__ = ["verify"]


def __getattr__(name: str) -> Any:
    """`verify`, imported when it is asked for: commands that judge nothing themselves start without torch."""
    if name != "verify":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from harness.running.verify import verify

    return verify
