"""Liger-Kernel (PyPI: liger-kernel): Triton kernels for training, through `liger_kernel.transformers.functional`.

Each file maps a contract's arguments onto one function of the package, and has no arithmetic of its own.
"""

from backends.base import CUDA, UP_TO_FLOAT32, Backend
from backends.liger.declared import DECLARED

BACKEND = Backend(
    summary="the published package liger-kernel, which is Triton",
    # Some kernels call `.to` on a number, which Triton's interpreter does not support.
    devices=(CUDA,),
    # Its kernels compute in float32: liger_kernel/ops/utils.py, torch_to_triton_dtype.
    dtypes=UP_TO_FLOAT32,
    declared=DECLARED,
    absent={
        "attention": "Liger-Kernel has attention over a neighbourhood and over several tokens, not the full one",
        "log_softmax": "Liger-Kernel has a softmax and no logarithm of it",
    },
    needs={"liger_kernel": "liger-kernel", "triton": "triton"},
    lacks={
        "layer_norm": {
            "no-affine": "liger_layer_norm needs a weight: layer_norm_forward reads its shape",
            "vector": "liger_layer_norm needs a weight: layer_norm_forward reads its shape",
            "images": "liger_layer_norm normalises the last dimension alone, as its docstring says",
        },
        "rms_norm": {
            "residual-alone": "liger_fused_add_rms_norm needs a weight: fused_add_rms_norm_forward reads its shape",
        },
        "rotary": {
            "interleaved": "liger_rope turns halves as Llama does: LigerRopeFunction's docstring",
        },
    },
)
