"""What fla-core's functions do otherwise than their contracts: docs/findings.md shows the defects with scripts."""

from __future__ import annotations

from backends.base import Declaration

_NO_ROWS = (
    "defect: backward of no rows raises ZeroDivisionError, since layer_norm_bwd divides by the number of programs"
)

DECLARED = (
    Declaration("sizes", _NO_ROWS, operator="layer_norm"),
    Declaration("sizes", _NO_ROWS, operator="rms_norm"),
    Declaration(
        "sizes",
        "rotary_embedding_fwdbwd asserts heads of at most 256 elements: 'Only support D <= 256'",
        operator="rotary",
    ),
)
