"""The operators as CUDA kernels over packed accessors, with matrix products by PyTorch and C++ autograd around them.

Packed accessors carry strides to the device: any layout is read without a copy, and no load is wider than an element.
`cuda_raw_pointer` and `cuda_accessor` differ in addressing only: compare the two folders.
"""

from backends.base import CUDA, CUDA_EMULATED, Backend

BACKEND = Backend(
    summary="CUDA kernels over packed accessors, C++ autograd",
    devices=(CUDA, CUDA_EMULATED),
    absent={"lltm_sequence": "its kernels would be those of its lltm, one launch a step, as cuda_raw_pointer shows"},
)
