"""LayerNorm in CUDA kernels that read a row once; see csrc/rows.cu."""

from pathlib import Path

from backends._python import transforms
from backends.base import NATIVE, SHARED_CUDA, CompiledOperator

CSRC = Path(__file__).parent / "csrc"
#: For rows that do not fit the registers of a block: the kernels that read them again.
RAW_POINTER = Path(__file__).parent.parent / "cuda_raw_pointer" / "csrc"

IMPLEMENTATION = CompiledOperator(
    operator="layer_norm",
    namespace="cuda_fused",
    sources=(CSRC / "rows.cu", CSRC / "rows_backward.cu", RAW_POINTER / "layer_norm.cu", CSRC / "layer_norm.cpp"),
    include_dirs=(CSRC, SHARED_CUDA, NATIVE, RAW_POINTER),
    under_transforms=transforms.layer_norm,
)
