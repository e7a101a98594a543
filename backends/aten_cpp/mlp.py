"""MLP in ATen operations; see csrc/mlp.cpp."""

from pathlib import Path

from backends._python import transforms
from backends.base import NATIVE, CompiledOperator

CSRC = Path(__file__).parent / "csrc"

IMPLEMENTATION = CompiledOperator(
    operator="mlp",
    namespace="aten_cpp",
    sources=(CSRC / "mlp.cpp",),
    include_dirs=(NATIVE,),
    under_transforms=transforms.mlp,
)
