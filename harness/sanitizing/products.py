"""Products of half types in float32, for implementations that are watched by compute-sanitizer.

On Hopper, cuBLAS stores the results of half types by the bulk copy engine (TMA). initcheck does not see that, and finds
fault with every kernel that reads a product; racecheck stops with an error of its own. What is watched are the
implementation's kernels, not those of cuBLAS, so products are made in float32, which both tools can watch, and rounded.

`python -m harness.sanitizing.products float16` reads such products by copying them, as cuBLAS makes them: nothing else,
and nothing wrong. It shows whether initcheck sees them.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from backends.base import CUDA
from harness.running.selection import DTYPE_NAMES

#: Rows, inner dimension and columns: products of the sizes that operators are called at under a tool.
SHAPES = ((3, 9, 15), (16, 160, 384), (64, 160, 384))
HALF = (torch.float16, torch.bfloat16)
_PRODUCTS = ("mm", "addmm", "bmm", "baddbmm")
_IN_PLACE = ("addmm_", "baddbmm_")


@contextmanager
def in_float32(key: str = "CUDA") -> Iterator[None]:
    """Make products whose operands are of a half type in float32 and round them, whoever asks PyTorch for them.

    `key` is the dispatch key of the device. This holds for the whole process, so in threads of autograd and in C++ too.
    """
    with torch.library._scoped_library("aten", "IMPL") as library:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Warning only once for all operators")  # that kernels are overridden
            for name in (*_PRODUCTS, *(f"{name}.out" for name in _PRODUCTS), *_IN_PLACE):
                there = torch.library.get_kernel(f"aten::{name}", key)
                library.impl(name, _widened(name, there), key, with_keyset=True)
        yield


def _widened(name: str, there: Any) -> Callable[..., Tensor]:
    """An operation of PyTorch, whose kernel is `there`, with operands of a half type made wider."""
    into_first, product = name in _IN_PLACE, getattr(torch.ops.aten, name.removesuffix(".out").rstrip("_")).default

    def call(keys: torch._C.DispatchKeySet, *given: Any, out: Tensor | None = None, **scales: Any) -> Tensor:
        narrow = [value.dtype for value in given if isinstance(value, Tensor) and value.dtype in HALF]
        if not narrow:
            rest = scales if out is None else {**scales, "out": out}
            kept: Tensor = there.call_boxed(keys, *given, **rest)
            return kept
        made: Tensor = product(*(value.float() if isinstance(value, Tensor) else value for value in given), **scales)
        into = given[0] if into_first else out
        return made.to(narrow[0]) if into is None else into.resize_(made.shape).copy_(made)

    return call


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
