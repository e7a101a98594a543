"""The operators in C++ over ATen operations, with the gradient written by hand and C++ autograd around it.

The tutorial's first extension does the same: there is no Python between the operations, but each of them is still a
kernel of its own that reads and writes memory.
"""

from backends.base import CPU, CUDA, Backend

BACKEND = Backend(
    summary="ATen operations in C++, gradient by hand, C++ autograd",
    devices=(CPU, CUDA),
)
