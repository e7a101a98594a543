"""What a process does before it forks to judge: it must leave to its forks all that CUDA needs."""

from __future__ import annotations

import pytest

from tests.meta.conftest import Run
from tests.meta.tiers import first_alone

#: Prints how often the named built-in function was called while a process became warm.
_PROGRAM = """
import sys

calls = 0

def count(frame, event, what):
    global calls
    calls += event == "c_call" and what.__name__ == "run_backward"

from harness.pytest_plugin import warming

sys.setprofile(count)
warming.warm_up()
{then}
sys.setprofile(None)
print(calls)
"""
_BACKWARD = """
import torch

torch.ones(2, requires_grad=True).sum().backward()
"""


@pytest.mark.parametrize(
    ("then", "calls"), first_alone([("", "0"), (_BACKWARD, "1")]), ids=["it", "a backward after it"]
)
def test_it_makes_no_backward(python: Run, then: str, calls: str) -> None:
    """Where there is a GPU, autograd starts threads at the first backward, and raises in every fork after it."""
    done = python("-c", _PROGRAM.format(then=then))
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == calls
