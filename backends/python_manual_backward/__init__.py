"""The backward pass written by hand in Python, as in a compiled extension, but without a compiler."""

import torch

from backends.base import CPU, CUDA, Backend, Declaration

_TRACED = (
    "torch.compile of torch 2.11 loses the gradients of a torch.autograd.Function that has further outputs, kept for a "
    "second differentiation: they are 0. torch 2.13 traces them, as the CPU shows"
)

BACKEND = Backend(
    summary="torch.autograd.Function with a closed-form backward",
    devices=(CPU, CUDA),
    declared=(
        Declaration("compile", _TRACED, operator="lltm", device=CUDA, dtype=torch.float32),
        Declaration("compile", _TRACED, operator="layer_norm", device=CUDA, dtype=torch.float32),
        Declaration("reduce-overhead", _TRACED, operator="lltm", device=CUDA, dtype=torch.float32),
        Declaration("reduce-overhead", _TRACED, operator="layer_norm", device=CUDA, dtype=torch.float32),
    ),
    absent={"lltm_sequence": "a loop of its lltm is the same backward: see python_autograd for the loop"},
)
