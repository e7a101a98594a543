"""What a reference says of its gradient, as an attribute: `slow.gradient = "autograd"` below the function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from harness.deriving.wording import named
from harness.errors import UsageError

#: The gradient is the derivative, as for most references; it is what autograd returns, although that is none; or no
#: gradient is asked.
DERIVATIVE, AUTOGRAD, NONE = "derivative", "autograd", "none"

#: The attribute, and how a message says what to write.
_ATTRIBUTE = "gradient"


def of(where: str, function: Callable[..., Any]) -> str:
    """What the function's attribute says; DERIVATIVE without one. Raises UsageError if it is something else."""
    said = getattr(function, _ATTRIBUTE, DERIVATIVE)
    if said not in (DERIVATIVE, AUTOGRAD, NONE):
        raise UsageError(
            f"{where}.{_ATTRIBUTE} was {named(said)}, but should be {DERIVATIVE!r}, {AUTOGRAD!r} or {NONE!r}"
        )
    return str(said)


def advice(where: str, value: str) -> str:
    """What to write below the function."""
    return f'{where.rpartition(":")[2]}.{_ATTRIBUTE} = "{value}"'
