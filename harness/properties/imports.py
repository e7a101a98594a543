"""The module that holds the implementation can be imported and leaves the function there.

A candidate is imported in a process of its own. What it does there, an exit or a crash or a hang, fails this property,
and no other property is judged. A backend that does not load fails every property with the same reason.
"""

from __future__ import annotations

from typing import Any

from harness.judging.property import Property
from harness.judging.subject import Subject
from harness.report.levels import VALUES


def check(subject: Subject) -> dict[str, Any]:  # noqa: ARG001
    """Nothing is left to do: the subject exists, so its module has been imported."""
    return {}


PROPERTY = Property(
    "imports", "the module imports, and the function is there", check, level=VALUES, outside=True, once=True
)
