"""LLTM over a sequence by the kernels of the cell; see csrc/lltm_sequence.cpp."""

from pathlib import Path

from backends._python import transforms
from backends.base import NATIVE, SHARED_CUDA, CompiledOperator

CSRC = Path(__file__).parent / "csrc"

IMPLEMENTATION = CompiledOperator(
    operator="lltm_sequence",
    namespace="cuda_raw_pointer",
    sources=(CSRC / "lltm.cu", CSRC / "lltm_sequence.cpp"),
    include_dirs=(CSRC, SHARED_CUDA, NATIVE),
    under_transforms=transforms.lltm_sequence,
)
