"""The conformance of the shipped backends: a test for each property, `-k test_sizes` for example selects one.

`tests/conformance/test_properties.py::test_sizes[lltm-aten-cpp-cpu-float32]` is one cell of the report.
"""

from __future__ import annotations

from harness.pytest_plugin.property_tests import property_tests

globals().update(property_tests())
