"""The program that shows whether initcheck sees what PyTorch's products write, in the dtype that is its argument.

On Hopper, cuBLAS stores the results of half types by the bulk copy engine (TMA). Where initcheck does not see that, it
reports every kernel that reads a product. This program reads products by copying them: nothing else, and nothing wrong.
"""

from __future__ import annotations

import sys

import torch
import torch.nn.functional as F

from backends.base import CUDA
from harness.running.selection import DTYPE_NAMES

#: Rows, inner dimension and columns: products of the sizes that operators are called at under a tool.
SHAPES = ((3, 9, 15), (16, 160, 384), (64, 160, 384))


def copy_products(dtype: torch.dtype, device: str = CUDA) -> None:
    """Copy a product of each shape, with a bias and without."""
    for rows, inner, columns in SHAPES:
        left, right, bias = (
            torch.ones(shape, device=device, dtype=dtype) for shape in ((rows, inner), (columns, inner), (columns,))
        )
        for made in (F.linear(left, right, bias), left @ right.t()):
            made.clone()
    if device == CUDA:
        torch.cuda.synchronize()


if __name__ == "__main__":
    copy_products(DTYPE_NAMES[sys.argv[1]])
