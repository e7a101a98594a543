"""Results stay what they are until the caller's stream has read them."""

from harness.plugin import Judge
from harness.properties.record_stream import PROPERTY


def test_record_stream(cell: Judge) -> None:
    cell(PROPERTY)
