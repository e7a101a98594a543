"""LLTM with its pointwise part in one vectorised pass over memory on the CPU; matrix products by PyTorch.

The advantage over the ATen operations of `aten_cpp`: no intermediate tensor is written and read again, and exp and tanh
are polynomials that the compiler turns into vector instructions. Over a sequence, a step is a product and a pass, and
both write to memory that is allocated before the first step.
"""

import torch

from backends.base import CPU, Backend, Declaration

_POINTWISE = "what it would fuse here, PyTorch's own kernels fuse already: there is nothing to gain over torch-native"

_DENORMALS = (
    "beyond the overflow of exp, gradients of some 1e-305 err by 6e-304, because exp flushes denormals to zero: it is "
    "open whether the model of rounding should allow for that over several steps"
)

BACKEND = Backend(
    summary="one vectorised pass over memory on the CPU, C++ autograd",
    devices=(CPU,),
    declared=(Declaration("combinations", _DENORMALS, operator="lltm_sequence", dtype=torch.float64),),
    absent={"layer_norm": _POINTWISE, "mlp": _POINTWISE},
)
