"""What fla-core's functions do otherwise than their contracts: docs/findings.md shows the defects with scripts.

`packages.json` in results/nvidia-h200 shows each failure.
"""

from __future__ import annotations

from backends.base import FLOAT32, UP_TO_FLOAT32, Declaration, declarations

_NO_ROWS = (
    "defect: backward of no rows raises ZeroDivisionError, since layer_norm_bwd divides by the number of programs"
)
_WIDE_ROWS = "layer_norm_fwd raises for rows of 64 KB: 'This layer norm doesn't support feature dim >= 64KB.'"
_TUNING = (
    "defect of Triton: an autotuned kernel keeps the arguments of its call and forgets them at its end, so of two "
    "threads that call it at once one raises TypeError: 'NoneType' object is not a mapping"
)
_WIDE_HEADS = "rotary_embedding_fwdbwd asserts heads of at most 256 elements: 'Only support D <= 256'"

DECLARED = (
    Declaration("sizes", _NO_ROWS, operator="layer_norm"),
    *declarations("layer_norm", _NO_ROWS, {"determinism": UP_TO_FLOAT32}),
    *declarations("layer_norm", _NO_ROWS, {"drawn-calls": UP_TO_FLOAT32}, by_chance=True),  # few calls have no rows
    *declarations("layer_norm", _TUNING, {"concurrent-threads": UP_TO_FLOAT32}, by_chance=True),
    *declarations("layer_norm", _WIDE_ROWS, {"memory": FLOAT32}),
    Declaration("sizes", _NO_ROWS, operator="rms_norm"),
    *declarations("rms_norm", _TUNING, {"concurrent-threads": UP_TO_FLOAT32}, by_chance=True),
    *declarations("rms_norm", _WIDE_ROWS, {"memory": FLOAT32}),
    Declaration("sizes", _WIDE_HEADS, operator="rotary"),
    *declarations("rotary", _WIDE_HEADS, {"combinations": UP_TO_FLOAT32}),
    *declarations(
        "rotary",
        "defect: more than 65535 sequences raise 'Triton Error [CUDA]: invalid argument', since each is a block of the "
        "second axis of the grid (flash-linear-attention#172)",
        {"determinism": UP_TO_FLOAT32},
    ),
)
