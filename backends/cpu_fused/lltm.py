"""LLTM in fused passes on the CPU; see csrc/lltm.cpp."""

from pathlib import Path

from backends._python import transforms
from backends.base import NATIVE, SHARED_CUDA, CompiledOperator
from backends.cpu_fused._flags import FLAGS

CSRC = Path(__file__).parent / "csrc"

IMPLEMENTATION = CompiledOperator(
    operator="lltm",
    namespace="cpu_fused",
    sources=(CSRC / "lltm.cpp",),
    include_dirs=(CSRC, SHARED_CUDA, NATIVE),
    flags=FLAGS,
    under_transforms=transforms.lltm,
)
