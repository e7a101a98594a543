"""Plain torch operations, differentiated by autograd: the baseline that every other backend is timed against."""

import torch

from backends.base import CPU, CUDA, Backend, Declaration

BACKEND = Backend(
    summary="plain torch operations, differentiated by autograd",
    devices=(CPU, CUDA),
    declared=tuple(
        Declaration(
            "determinism",
            "index_select on CUDA adds up the gradient by atomic operations, in another order each time",
            operator="embedding",
            device=CUDA,
            dtype=dtype,
            by_chance=True,
        )
        for dtype in (torch.float32, torch.float64, torch.float16)
    ),
)
