"""Every property as a test of its own, named like the property: what `python -m harness judge` runs."""

from __future__ import annotations

from harness.pytest_plugin.property_tests import property_tests

globals().update(property_tests())
