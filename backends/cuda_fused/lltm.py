"""LLTM in fused CUDA kernels; see csrc/lltm.cpp."""

from pathlib import Path

from backends._python import transforms
from backends.base import NATIVE, SHARED_CUDA, CompiledOperator

CSRC = Path(__file__).parent / "csrc"

IMPLEMENTATION = CompiledOperator(
    operator="lltm",
    namespace="cuda_fused",
    sources=(
        *(CSRC / "lltm.cu", CSRC / "lltm_small.cu", CSRC / "lltm_few_rows.cu", CSRC / "lltm_few_rows_float.cu"),
        *(CSRC / "lltm_few_rows_weights.cu", CSRC / "lltm_few_rows_weights_float.cu", CSRC / "lltm.cpp"),
    ),
    include_dirs=(CSRC, SHARED_CUDA, NATIVE),
    under_transforms=transforms.lltm,
)
