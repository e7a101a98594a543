"""LLTM over a sequence in ATen operations; see csrc/lltm_sequence.cpp."""

from pathlib import Path

from backends._python import transforms
from backends.base import NATIVE, CompiledOperator

CSRC = Path(__file__).parent / "csrc"

IMPLEMENTATION = CompiledOperator(
    operator="lltm_sequence",
    namespace="aten_cpp",
    sources=(CSRC / "lltm_sequence.cpp",),
    include_dirs=(NATIVE,),
    under_transforms=transforms.lltm_sequence,
)
