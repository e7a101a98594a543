"""Under torch.autocast the contract's rule holds, with torch.amp.GradScaler too."""

from harness.plugin import Judge
from harness.properties.autocast import PROPERTY


def test_autocast(cell: Judge) -> None:
    cell(PROPERTY)
