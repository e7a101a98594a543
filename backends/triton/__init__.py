"""Fused kernels in Triton, with matrix products by PyTorch: one source for the GPU and for Triton's interpreter.

On the device `cuda` Triton compiles the kernels, on `triton-interpreted` its interpreter runs the same functions over
numpy arrays: a run there judges the arithmetic and the indexing, not the compiler. Triton is an optional dependency.
"""

import torch

from backends.base import CUDA, TRITON_INTERPRETED, Backend, Declaration

BACKEND = Backend(
    summary="fused Triton kernels; without a GPU by Triton's interpreter",
    devices=(CUDA, TRITON_INTERPRETED),
    declared=(
        Declaration(
            "functional-transforms",
            "functorch has no rule for torch.library.register_autograd: torch.func.grad raises, and is never wrong",
            dtype=torch.float64,
        ),
    ),
    absent={"lltm_sequence": "its kernels would be those of lltm, one launch a step, as cuda_raw_pointer shows"},
)
