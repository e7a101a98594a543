"""MLP as CUDA kernels over raw pointers; see csrc/mlp.cu."""

from pathlib import Path

from backends._python import transforms
from backends.base import NATIVE, SHARED_CUDA, CompiledOperator

CSRC = Path(__file__).parent / "csrc"

IMPLEMENTATION = CompiledOperator(
    operator="mlp",
    namespace="cuda_raw_pointer",
    sources=(CSRC / "mlp.cu", CSRC / "mlp.cpp"),
    include_dirs=(CSRC, SHARED_CUDA, NATIVE),
    under_transforms=transforms.mlp,
)
