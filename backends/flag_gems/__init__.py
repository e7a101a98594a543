"""FlagGems (PyPI: flag-gems): PyTorch's operators in Triton, called by their names and not by `flag_gems.enable`.

`enable` replaces operators of the whole process, those of the judge too. Each file maps a contract's arguments onto one
function of the package. Where it has forward and backward as two functions, as ATen has, `joined` makes them one.
"""

from backends.base import CUDA, UP_TO_FLOAT32, Backend
from backends.flag_gems.declared import DECLARED

BACKEND = Backend(
    summary="the published package flag-gems, which is Triton",
    # It looks for a GPU when it is imported, and raises where there is none: flag_gems/runtime/error.py.
    devices=(CUDA,),
    # Most of its kernels load into float32: a TODO in flag_gems/ops/log_softmax.py says so of float64.
    dtypes=UP_TO_FLOAT32,
    declared=DECLARED,
    absent={
        "attention": "flag_gems/ops/attention.py asserts heads of 16, 32, 64, 128 or 256 elements, and the contract "
        "has cases of others",
        "rotary": "flag_gems.apply_rotary_pos_emb has no backward",
    },
    needs={"flag_gems": "flag-gems", "sqlalchemy": "SQLAlchemy", "yaml": "PyYAML", "triton": "triton"},
    lacks={
        # Judging them would let the kernel write over tensors of the judge, or end its use of the device.
        "layer_norm": {
            "images": "defect: layer_norm_backward takes the first dimension for all rows, and writes beyond the "
            "gradients of weight and bias (FlagGems#5392)",
            "no-affine": "defect: layer_norm_backward takes the first dimension for all rows: the gradient of a tensor "
            "of rank 3 is wrong (FlagGems#5392)",
            "vector": "defect: layer_norm_backward takes the first dimension for all rows: of a tensor of rank 1 it "
            "reads beyond mean and reciprocal deviation (FlagGems#5392)",
        },
        "rms_norm": {
            "no-weight": "flag_gems.rms_norm needs a weight: rms_norm_forward makes it contiguous",
            "residual": "flag_gems.fused_add_rms_norm writes over its arguments and has no backward",
            "residual-alone": "flag_gems.fused_add_rms_norm writes over its arguments and has no backward",
        },
    },
)
