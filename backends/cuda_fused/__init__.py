"""The operators as CUDA kernels that are written for speed: what the teaching backends leave plain is fused here.

One kernel for a whole cell where its products are small, one for all steps of a sequence, one pass over the rows of a
LayerNorm; products that fill a GPU are PyTorch's, in the form in which its library is fastest.
"""

from backends.base import CUDA, CUDA_EMULATED, Backend

BACKEND = Backend(
    summary="CUDA kernels written for speed, C++ autograd",
    devices=(CUDA, CUDA_EMULATED),
    absent={
        "mlp": "its products are all but nothing of it, and what would be fused with them is an addition and a max"
    },
)
