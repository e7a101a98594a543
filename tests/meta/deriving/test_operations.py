"""References of assignments, padding and strides, and of losses and norms that are composed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from harness.deriving.contract import derive_from
from harness.judging.judge import judge
from harness.judging.subject import Subject
from harness.properties import all_properties
from harness.report.cell import FAIL, PASS

Function = Callable[..., Any]


def shifted(x: Tensor) -> Tensor:
    found = torch.zeros_like(x)
    found[..., 1:] = x[..., :-1] * 2
    return found


def padded(x: Tensor) -> Tensor:
    return F.pad(x * 2, (1, -1))


def strided(x: Tensor) -> Tensor:
    y = x.contiguous() * 2
    return F.pad(torch.as_strided(y, (y.shape[0], y.shape[1] - 1), y.stride()), (1, 0))


def filled(x: Tensor) -> Tensor:
    found = torch.empty_like(x)
    found[..., :1].fill_(0)
    found[..., 1:].copy_(2 * x[..., :-1])
    return found


def norm(x: Tensor) -> Tensor:
    return x / torch.linalg.vector_norm(x, dim=-1, keepdim=True).clamp(min=1e-3)


def norm_of_pytorch(x: Tensor) -> Tensor:
    return x / torch.norm(x, dim=-1, keepdim=True).clamp(min=1e-3)


def logits_loss(x: Tensor, y: Tensor) -> Tensor:
    return F.binary_cross_entropy_with_logits(x, y, reduction="none")


def logits_loss_by_hand(x: Tensor, y: Tensor) -> Tensor:
    return (1 - y) * x + F.softplus(-x)


X, Y = torch.randn(6, 8), torch.rand(6, 8)


@pytest.mark.parametrize(
    ("reference", "example", "right"),
    [
        (shifted, (X,), padded),
        (padded, (X,), shifted),
        (strided, (X,), shifted),
        (filled, (X,), padded),
        (norm, (X,), norm_of_pytorch),
        (logits_loss, (X, Y), logits_loss_by_hand),
    ],
)
def test_another_form_passes_and_a_wrong_one_fails(reference: Function, example: Any, right: Function) -> None:
    contract = derive_from(reference, example).operator

    def wrong(*tensors: Tensor) -> Any:
        return right(*tensors) * 1.01

    for function, verdict in ((right, PASS), (wrong, FAIL)):
        subject = Subject(contract, "it", "cpu", torch.float32, function)
        for property in ("forward-parity", "vjp-parity"):
            found = judge(subject, all_properties()[property])
            assert found.verdict == verdict, found.reason
