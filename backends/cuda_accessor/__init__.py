"""The operators as CUDA kernels over packed accessors, with matrix products by PyTorch and C++ autograd around them.

Packed accessors, which carry strides to the device. Any layout is read where it lies; no load is wider than an element.
`cuda_raw_pointer` and `cuda_accessor` differ in addressing only: compare the two folders.
"""

import torch

from backends.base import CUDA, CUDA_EMULATED, Backend, Declaration

BACKEND = Backend(
    summary="CUDA kernels over packed accessors, C++ autograd",
    devices=(CUDA, CUDA_EMULATED),
    declared=(
        Declaration(
            "functional-transforms",
            "PyTorch has no functorch rule for a C++ autograd function: torch.func.grad raises, and is never wrong",
            dtype=torch.float64,
        ),
    ),
    absent={"lltm_sequence": "its kernels would be those of its lltm, one launch a step, as cuda_raw_pointer shows"},
)
