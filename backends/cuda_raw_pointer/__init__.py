"""The operators as CUDA kernels over raw pointers, with matrix products by PyTorch and C++ autograd around them.

The pointers are to contiguous memory, and a load is 16 bytes where size and alignment allow it. What is not contiguous
is copied first.
`cuda_raw_pointer` and `cuda_accessor` differ in addressing only: compare the two folders.
"""

from backends.base import CUDA, CUDA_EMULATED, Backend

BACKEND = Backend(
    summary="CUDA kernels over raw pointers, C++ autograd",
    devices=(CUDA, CUDA_EMULATED),
)
