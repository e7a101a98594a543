"""LLTM over a sequence, all steps in one CUDA kernel; see csrc/lltm_sequence.cpp."""

from pathlib import Path

from backends._python import transforms
from backends.base import NATIVE, SHARED_CUDA, CompiledOperator

CSRC = Path(__file__).parent / "csrc"
#: For states that are too wide for one kernel: the kernels of the cell.
RAW_POINTER = Path(__file__).parent.parent / "cuda_raw_pointer" / "csrc"

IMPLEMENTATION = CompiledOperator(
    operator="lltm_sequence",
    namespace="cuda_fused",
    sources=(CSRC / "lltm_sequence.cu", RAW_POINTER / "lltm.cu", CSRC / "lltm_sequence.cpp"),
    include_dirs=(CSRC, SHARED_CUDA, NATIVE, RAW_POINTER),
    under_transforms=transforms.lltm_sequence,
)
