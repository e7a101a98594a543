"""LLTM in ATen operations; see csrc/lltm.cpp."""

from pathlib import Path

from backends._python import transforms
from backends.base import NATIVE, CompiledOperator

CSRC = Path(__file__).parent / "csrc"

IMPLEMENTATION = CompiledOperator(
    operator="lltm",
    namespace="aten_cpp",
    sources=(CSRC / "lltm.cpp",),
    include_dirs=(NATIVE,),
    under_transforms=transforms.lltm,
)
