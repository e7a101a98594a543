"""LLTM over a sequence, all steps in one CUDA kernel where it can hold the weights; see csrc/lltm_sequence.cpp."""

from pathlib import Path

from backends._python import transforms
from backends.base import NATIVE, SHARED_CUDA, CompiledOperator

CSRC = Path(__file__).parent / "csrc"
KERNELS = ("lltm_sequence.cu", "lltm_sequence_spread.cu", "lltm.cu")

IMPLEMENTATION = CompiledOperator(
    operator="lltm_sequence",
    namespace="cuda_fused",
    sources=tuple(CSRC / name for name in (*KERNELS, "lltm_sequence.cpp")),
    include_dirs=(CSRC, SHARED_CUDA, NATIVE),
    under_transforms=transforms.lltm_sequence,
)
