"""A test function for each property; a test file adds them to its globals to judge the selection."""

from __future__ import annotations

from collections.abc import Callable

from harness.judging.property import Property
from harness.properties import all_properties
from harness.pytest_plugin import names
from harness.pytest_plugin.plugin import Judge


def property_tests() -> dict[str, Callable[[Judge], None]]:
    """By name, `test_sizes` for example; each takes the fixture `cell` and has the property's claim as docstring."""
    return {names.test_of(name): _test_of(found) for name, found in all_properties().items()}


def _test_of(held: Property) -> Callable[[Judge], None]:
    def test(cell: Judge) -> None:
        cell(held)

    test.__name__, test.__doc__ = names.test_of(held.name), held.claim
    return test
