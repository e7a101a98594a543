"""One test for each property, with the property's name. `python -m harness judge` runs this file."""

from __future__ import annotations

from harness.pytest_plugin.property_tests import property_tests

globals().update(property_tests())
