"""LLTM in fused passes on the CPU; see csrc/lltm.cpp."""

from pathlib import Path

from backends._python import transforms
from backends.base import NATIVE, SHARED_CUDA, CompiledOperator

CSRC = Path(__file__).parent / "csrc"

IMPLEMENTATION = CompiledOperator(
    operator="lltm",
    namespace="cpu_fused",
    sources=(CSRC / "lltm.cpp",),
    include_dirs=(CSRC, SHARED_CUDA, NATIVE),
    flags=(
        "-O3",
        # A choice between two values becomes a select, as vectors need it. Neither flag changes any result, and none
        # of -ffast-math is set at the link, where it would turn denormal numbers off for the whole process.
        "-fno-math-errno",
        "-fno-trapping-math",
        # at::parallel_for is silently serial without it. The library is torch's own, which is loaded already.
        "-fopenmp",
    ),
    under_transforms=transforms.lltm,
)
