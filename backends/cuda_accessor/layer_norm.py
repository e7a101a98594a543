"""LayerNorm as CUDA kernels over packed accessors; see csrc/layer_norm.cu."""

from pathlib import Path

from backends._python import transforms
from backends.base import NATIVE, SHARED_CUDA, CompiledOperator

CSRC = Path(__file__).parent / "csrc"

IMPLEMENTATION = CompiledOperator(
    operator="layer_norm",
    namespace="cuda_accessor",
    sources=(CSRC / "layer_norm.cu", CSRC / "layer_norm.cpp"),
    include_dirs=(CSRC, SHARED_CUDA, NATIVE),
    under_transforms=transforms.layer_norm,
)
