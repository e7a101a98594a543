"""MLP in fused CUDA kernels; see csrc/mlp.cpp."""

from pathlib import Path

from backends._python import transforms
from backends.base import NATIVE, SHARED_CUDA, CompiledOperator

CSRC = Path(__file__).parent / "csrc"

IMPLEMENTATION = CompiledOperator(
    operator="mlp",
    namespace="cuda_fused",
    sources=(CSRC / "mlp.cu", CSRC / "mlp_small.cu", CSRC / "mlp_narrow.cu", CSRC / "mlp.cpp"),
    include_dirs=(CSRC, SHARED_CUDA, NATIVE),
    under_transforms=transforms.mlp,
)
