"""A left factor with padding between its rows that holds NaN: oneDNN's bfloat16 products read it (torch 2.13)."""

from __future__ import annotations

import pytest
import torch

from harness.discovery import operator
from harness.judging.scenario import Scenario
from harness.judging.subject import Subject
from harness.judging.tally import Tally
from harness.running.selection import Selection, slots
from tests.meta.tiers import AGAIN
from tests.zoo import registry as zoo

#: More rows than a tile has, and one column of results: the sizes at which it was seen.
_PADDED = Scenario(
    (("batch", 31), ("input_features", 3), ("hidden_size", 63), ("output_size", 1)), layouts=(("input", "padded"),)
)


@pytest.mark.parametrize(
    ("backend", "device"),
    [
        ("python-autograd", "cpu"),
        ("python-manual-backward", "cpu"),
        ("torch-native", "cpu"),
        ("aten-cpp", "cpu"),
        ("cuda-accessor", "cuda-emulated"),
        pytest.param("cuda-raw-pointer", "cuda-emulated", marks=pytest.mark.long(AGAIN)),
    ],
)
def test_backends_multiply_what_is_dense(backend: str, device: str) -> None:
    (slot,) = slots(Selection(operators=("mlp",), backends=(backend,), devices=(device,), dtypes=("bfloat16",)))
    Tally(slot.subject()).run(_PADDED)


@pytest.mark.parametrize("control", zoo.controls("mlp"), ids=lambda control: control.name)
def test_controls_multiply_what_is_dense(control: zoo.Control) -> None:
    Tally(Subject(operator("mlp"), "candidate", "cpu", torch.bfloat16, control.function)).run(_PADDED)
