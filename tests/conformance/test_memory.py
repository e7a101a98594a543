"""No more is kept than backward needs, and nothing when it is done."""

from harness.plugin import Judge
from harness.properties.memory import PROPERTY


def test_memory(cell: Judge) -> None:
    cell(PROPERTY)
