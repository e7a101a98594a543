"""Forward and backward do not wait for the GPU."""

from harness.plugin import Judge
from harness.properties.no_waiting import PROPERTY


def test_no_waiting(cell: Judge) -> None:
    cell(PROPERTY)
