"""`backends.autocast.by_rule` follows a rule of the contract, and refuses an operator that has none."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from backends.autocast import by_rule
from harness.discovery import operator
from tests.zoo.honest.lltm import plain

LLTM = operator("lltm")


def test_the_rule_is_followed() -> None:
    seen = []
    function = by_rule(LLTM)(lambda *inputs: seen.extend(tensor.dtype for tensor in inputs) or plain(*inputs))
    with torch.autocast("cpu", torch.bfloat16):
        outputs = function(*(torch.zeros(size) for size in ((2, 3), (12, 7), (12,), (2, 4), (2, 4))))
    assert {*seen, *(tensor.dtype for tensor in outputs)} == {torch.bfloat16}


def test_without_a_rule_it_refuses_when_it_decorates() -> None:
    with pytest.raises(ValueError, match="operator 'lltm' has no rule for autocast in its contract"):
        by_rule(replace(LLTM, autocast=""))
