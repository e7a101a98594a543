"""The operators as CUDA kernels that are written for speed: they fuse what the teaching backends keep separate.

One kernel computes a whole cell or network where its products are small, one all steps of a sequence, and one reads
each row of a LayerNorm once. PyTorch computes the products that fill a GPU, in the form in which its library is
fastest.
"""

from backends.base import CUDA, CUDA_EMULATED, Backend

BACKEND = Backend(summary="CUDA kernels written for speed, C++ autograd", devices=(CUDA, CUDA_EMULATED))
