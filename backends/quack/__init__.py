"""QuACK (PyPI: quack-kernels): kernels in the CuTe DSL, for GPUs from compute capability 8.0.

Each file maps a contract's arguments onto one function of the package, and has no arithmetic of its own.
"""

from backends.base import CUDA, UP_TO_FLOAT32, Backend
from backends.quack.declared import DECLARED

BACKEND = Backend(
    summary="the published package quack-kernels, which is CuTe DSL",
    devices=(CUDA,),
    # quack/rmsnorm.py and cross_entropy.py assert one of these.
    dtypes=UP_TO_FLOAT32,
    declared=DECLARED,
    absent={
        "embedding": "QuACK has no embedding",
        "layer_norm": "quack.rmsnorm.layernorm_fwd has no autograd, and takes weights in float32 alone",
        "log_softmax": "QuACK has a softmax and no logarithm of it",
        "rotary": "quack.rotary takes heads of a multiple of 8 elements, and the contract has cases of others",
        "softmax": "quack.softmax asserts that the width is a multiple of 4 elements in float32 and of 8 in half types "
        "('Input N 5 is not divisible by vector size 4'), and the contract has others",
        "swiglu": "QuACK's swiglu is the end of a matrix product, and no function of two tensors",
        "geglu": "QuACK's geglu is the end of a matrix product, and no function of two tensors",
    },
    needs={"quack": "quack-kernels", "cutlass": "nvidia-cutlass-dsl"},
    lacks={
        "cross_entropy": {
            "label-smoothing": "quack.cross_entropy has no label smoothing",
        },
    },
)
