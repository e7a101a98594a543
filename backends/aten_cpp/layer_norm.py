"""LayerNorm in ATen operations; see csrc/layer_norm.cpp."""

from pathlib import Path

from backends._python import transforms
from backends.base import NATIVE, CompiledOperator

CSRC = Path(__file__).parent / "csrc"

IMPLEMENTATION = CompiledOperator(
    operator="layer_norm",
    namespace="aten_cpp",
    sources=(CSRC / "layer_norm.cpp",),
    include_dirs=(NATIVE,),
    under_transforms=transforms.layer_norm,
)
