"""A forked child computes what its parent would, and leaves alone what its parent is at."""

from harness.plugin import Judge
from harness.properties.multiprocessing import PROPERTY


def test_multiprocessing(cell: Judge) -> None:
    cell(PROPERTY)
