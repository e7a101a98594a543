"""torch.export takes the operator whole, for any batch, through a file and back."""

from harness.plugin import Judge
from harness.properties.export import PROPERTY


def test_export(cell: Judge) -> None:
    cell(PROPERTY)
