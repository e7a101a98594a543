"""What this suite knows, as a report records it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache

from backends.base import DEVICES
from harness import discovery
from harness.errors import HarnessError
from harness.properties import all_properties
from harness.report.suite import KnownProperty, Suite
from harness.running.selection import DTYPE_NAMES
from harness.running.strength import Strength, strengths


@cache
def describe() -> Suite:
    """Names and claims. What cannot be loaded is left out: its own cells report why."""
    strong, unknown = strengths(), Strength(0, 0, 0)
    return Suite(
        operators=_names(discovery.operators),
        backends=_names(discovery.all_backends),
        devices=tuple(DEVICES),
        dtypes=tuple(DTYPE_NAMES),
        properties=tuple(
            KnownProperty(
                found.name,
                found.claim,
                found.view,
                found.level,
                **vars(strong.get(found.name, unknown)),
                dtypes=found.dtypes,
                devices=found.devices,
                why_only=found.why_only,
            )
            for found in all_properties().values()
        ),
    )


def _names(load: Callable[[], Iterable[str]]) -> tuple[str, ...]:
    try:
        return tuple(load())
    except HarnessError:
        return ()
