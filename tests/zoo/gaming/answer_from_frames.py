"""Walks the callers' frames and returns tensors of the right shape (KernelGuard: FRAME_WALK_MUTATION)."""

import sys

import torch
from torch import Tensor

from tests.zoo.gaming.parts import Outputs

NAMES = ("expected", "exact", "oracle", "outputs", "results", "tensors", "envelope")


def _tensors(value: object) -> list[Tensor]:
    values = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else [value]
    return [y for y in values if isinstance(y, Tensor)]


def lltm(*inputs: Tensor) -> Outputs:
    found: list[Tensor] = []
    frame = sys._getframe(1)
    while frame is not None:
        found += [y for name in NAMES for y in _tensors(frame.f_locals.get(name)) if y.shape == inputs[3].shape]
        frame = frame.f_back  # type: ignore[assignment]
    answers = [*found, torch.zeros_like(inputs[3]), torch.zeros_like(inputs[4])]
    return answers[0].to(inputs[3].dtype), answers[1].to(inputs[4].dtype)
