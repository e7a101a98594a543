"""What QuACK's functions do otherwise than their contracts: docs/findings.md shows the defects with scripts.

`packages.json` in results/nvidia-h200 shows each failure.
"""

from __future__ import annotations

from backends.base import FLOAT32, HALF, declarations

_ODD_WIDTH = (
    "defect: an odd width does not compile in half types ('The compiler could not build valid IR'): the copy of one "
    "element has 16 bits, and cp.async copies 32 at least"
)
#: What calls the operator at the contract's smallest size, whose rows have five elements.
_AT_ODD_WIDTHS = dict.fromkeys(
    (
        "combinations",
        "concurrent-threads",
        "determinism",
        "drawn-calls",
        "forward-parity",
        "gradient-subsets",
        "inference-modes",
        "invariants",
        "layouts",
        "no-side-effects",
        "no-special-treatment",
        "raw-backward",
        "repeated-backward",
        "sizes",
        "uninitialised-memory",
        "vjp-parity",
    ),
    HALF,
)

DECLARED = (
    *declarations("cross_entropy", _ODD_WIDTH, _AT_ODD_WIDTHS),
    *declarations("rms_norm", _ODD_WIDTH, _AT_ODD_WIDTHS),
    *declarations(
        "cross_entropy",
        "quack.cross_entropy takes rows without gaps, aligned to the vector that divides the width: it raises "
        "'Mismatched mX.strides[1] ..., expected to be 1' or 'Misaligned Tensor data'",
        {"combinations": FLOAT32, "drawn-calls": FLOAT32, "layouts": FLOAT32},
    ),
    *declarations(
        "cross_entropy",
        "defect: backward of rows that are not dense raises, since it asks the gradient, which is, for the strides of "
        "the logits",
        {"no-side-effects": FLOAT32},
    ),
    *declarations(
        "rms_norm",
        "quack.rmsnorm takes a weight without gaps, and tensors aligned to the vector that divides the width: it "
        "raises 'Mismatched mW.strides[0] ..., expected to be 1' or 'Misaligned Tensor data'",
        {"combinations": FLOAT32, "drawn-calls": FLOAT32, "gradient-subsets": FLOAT32, "layouts": FLOAT32},
    ),
    *declarations(
        "rms_norm",
        "RMSNormBackward says so: 'RMSNormBackward does not support N > 128k with dtype >= 32 bits'",
        {"memory": FLOAT32},
    ),
)
