"""flash-linear-attention's modules (PyPI: fla-core): Triton kernels, tuned at the first call of each size.

Each file maps a contract's arguments onto one function of the package, and has no arithmetic of its own.
"""

from backends.base import CUDA, UP_TO_FLOAT32, Backend
from backends.fla.declared import DECLARED

BACKEND = Backend(
    summary="the published package fla-core (flash-linear-attention), which is Triton",
    # Its kernels are tuned at their first call by timing them on a GPU, which Triton's interpreter does not do.
    devices=(CUDA,),
    # Its kernels load into float32.
    dtypes=UP_TO_FLOAT32,
    declared=DECLARED,
    absent={
        "attention": "fla.ops.attn is causal self-attention, and the contract begins with the one that sees all tokens",
        "embedding": "flash-linear-attention has no embedding",
        "geglu": "fla.modules.activations has swiglu, powglu and sigmoidglu, and no geglu",
        "log_softmax": "flash-linear-attention has no logarithm of softmax",
        "softmax": "fla.ops.utils.softmax has no autograd",
    },
    needs={"fla": "fla-core", "einops": "einops", "triton": "triton"},
    lacks={
        "layer_norm": {
            "images": "fla.modules.norm.layernorm.layer_norm normalises the last dimension alone",
        },
    },
)
