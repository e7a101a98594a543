"""What is registered with torch.library keeps its rules, with inputs that require grad, and its gradients are right."""

from harness.plugin import Judge
from harness.properties.opcheck import PROPERTY


def test_opcheck(cell: Judge) -> None:
    cell(PROPERTY)
