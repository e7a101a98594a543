"""LayerNorm in CUDA kernels that read a row once; see csrc/rows.cu."""

from pathlib import Path

from backends._python import transforms
from backends.base import NATIVE, SHARED_CUDA, CompiledOperator

CSRC = Path(__file__).parent / "csrc"

IMPLEMENTATION = CompiledOperator(
    operator="layer_norm",
    namespace="cuda_fused",
    sources=(
        CSRC / "rows.cu",
        CSRC / "rows_backward.cu",
        CSRC / "few_rows_backward.cu",
        CSRC / "split_rows.cu",
        CSRC / "split_rows_backward.cu",
        CSRC / "long_rows.cu",
        CSRC / "layer_norm.cpp",
    ),
    include_dirs=(CSRC, SHARED_CUDA, NATIVE),
    under_transforms=transforms.layer_norm,
)
