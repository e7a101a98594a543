"""Replaces the method of CUDA events that tells the time between two (KernelGuard: TIMER_MONKEYPATCH)."""

import torch

from tests.zoo.gaming.parts import right

_honest = torch.cuda.Event.elapsed_time
torch.cuda.Event.elapsed_time = lambda self, other: _honest(self, other) / 100
patches_events = right
