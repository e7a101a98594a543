"""LLTM with its pointwise part in one vectorised pass over memory on the CPU, and products of few rows of its own.

The advantage over the ATen operations of `aten_cpp`: no intermediate tensor is written and read again, and exp and tanh
are polynomials that the compiler turns into vector instructions. Over a sequence, a step is a product and a pass, and
both write to memory that is allocated before the first step. In float32 and float64, products of few rows with weights
that stay in a cache are made without packing them (csrc/small_products.h); all others are PyTorch's.
"""

from backends.base import CPU, Backend

_POINTWISE = "what it would fuse here, PyTorch's own kernels fuse already: there is nothing to gain over torch-native"

BACKEND = Backend(
    summary="one vectorised pass over memory on the CPU, C++ autograd",
    devices=(CPU,),
    absent={"layer_norm": _POINTWISE, "mlp": _POINTWISE},
)
