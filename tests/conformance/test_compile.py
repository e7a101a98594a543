"""torch.compile traces the operator whole, forward and backward, and what it traced is right."""

from harness.plugin import Judge
from harness.properties.compile import PROPERTY


def test_compile(cell: Judge) -> None:
    cell(PROPERTY)
