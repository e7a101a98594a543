"""The names of tests: a test for each property, `test_sizes[lltm-aten-cpp-cpu-float32]` for each cell of it."""

from __future__ import annotations

from harness.report.cell import Cell


def test_of(property: str) -> str:
    """`forward-parity` -> `test_forward_parity`."""
    return f"test_{property.replace('-', '_')}"


def property_of(test: str) -> str:
    """`test_forward_parity` -> `forward-parity`."""
    return test.removeprefix("test_").replace("_", "-")


def of_cell(cell: Cell) -> str:
    """The name of the test that the cell comes from."""
    return f"{test_of(cell.property)}[{cell.operator}-{cell.backend}-{cell.device}-{cell.dtype}]"


def of_node(nodeid: str) -> str:
    """The test's name without its file, and without the group that pytest-xdist may have added."""
    name = nodeid.rpartition("::")[2]
    return name[: name.rindex("]") + 1] if "]" in name else name


def parts(name: str) -> tuple[str, str]:
    """(test, place): `test_sizes` and `lltm-aten-cpp-cpu-float32`, which is a slot's id."""
    test, _, place = name.removesuffix("]").partition("[")
    return test, place
