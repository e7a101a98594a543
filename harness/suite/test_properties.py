"""Every property as a test of its own, named like the property: what tests/conformance has, a file each."""

from __future__ import annotations

from collections.abc import Callable

from harness.judge import Property
from harness.plugin import Judge
from harness.properties import all_properties


def _test_of(held: Property) -> Callable[[Judge], None]:
    def test(cell: Judge) -> None:
        cell(held)

    test.__doc__ = held.claim
    return test


for _name, _property in all_properties().items():
    globals()[f"test_{_name.replace('-', '_')}"] = _test_of(_property)
