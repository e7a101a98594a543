"""LLTM in fused CUDA kernels; see csrc/lltm.cpp."""

from pathlib import Path

from backends._python import transforms
from backends.base import NATIVE, SHARED_CUDA, CompiledOperator

CSRC = Path(__file__).parent / "csrc"
#: For its loads and stores of 16 bytes.
RAW_POINTER = Path(__file__).parent.parent / "cuda_raw_pointer" / "csrc"

IMPLEMENTATION = CompiledOperator(
    operator="lltm",
    namespace="cuda_fused",
    sources=(CSRC / "lltm.cu", CSRC / "lltm_small.cu", CSRC / "lltm.cpp"),
    include_dirs=(CSRC, SHARED_CUDA, NATIVE, RAW_POINTER),
    under_transforms=transforms.lltm,
)
