"""LLTM over a sequence on the CPU, a product and a fused pass a step; see csrc/lltm_sequence.cpp."""

from pathlib import Path

from backends._python import transforms
from backends.base import NATIVE, SHARED_CUDA, CompiledOperator
from backends.cpu_fused._flags import FLAGS

CSRC = Path(__file__).parent / "csrc"

IMPLEMENTATION = CompiledOperator(
    operator="lltm_sequence",
    namespace="cpu_fused",
    sources=(CSRC / "lltm_sequence.cpp",),
    include_dirs=(CSRC, SHARED_CUDA, NATIVE),
    flags=FLAGS,
    under_transforms=transforms.lltm_sequence,
)
