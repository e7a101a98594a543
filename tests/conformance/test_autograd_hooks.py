"""saved_tensors_hooks, checkpoints and hooks on tensors work."""

from harness.plugin import Judge
from harness.properties.autograd_hooks import PROPERTY


def test_autograd_hooks(cell: Judge) -> None:
    cell(PROPERTY)
