"""Right, though a setting of the process is changed: it is restored before the call returns."""

import contextlib
import ctypes
from collections.abc import Iterator

import torch
import torch.nn.functional as F
from torch import Tensor

from backends.base import check_arguments
from spec.lltm import OPERATOR
from tests.zoo.honest.lltm import Outputs, elementwise
from tests.zoo.registry import control


@contextlib.contextmanager
def _flushing() -> Iterator[None]:
    """Denormals are flushed inside. The mode from before comes back, whatever it was."""
    library, mode = ctypes.CDLL("libm.so.6"), ctypes.create_string_buffer(64)
    library.fegetenv(mode)
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        library.fesetenv(mode)


@control
def flushes_denormals_and_restores(
    input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor, old_cell: Tensor
) -> Outputs:
    """Denormals are flushed while tensors are concatenated, which computes nothing; then the mode is as before."""
    check_arguments(OPERATOR, input, weights, bias, old_h, old_cell)
    # A tracer cannot follow calls of a C library.
    with contextlib.nullcontext() if torch.compiler.is_compiling() else _flushing():
        X = torch.cat([old_h, input], dim=1)
    z_i, z_o, z_k = F.linear(X, weights, bias).chunk(3, dim=1)
    return elementwise(z_i, z_o, z_k, old_cell)
