"""torch.compile may replay forward and backward as CUDA graphs."""

from harness.plugin import Judge
from harness.properties.reduce_overhead import PROPERTY


def test_reduce_overhead(cell: Judge) -> None:
    cell(PROPERTY)
