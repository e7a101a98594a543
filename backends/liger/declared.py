"""What Liger-Kernel's functions do otherwise than their contracts: docs/findings.md shows the defects with scripts.

`packages.json` in results/nvidia-h200 shows each failure.
"""

from __future__ import annotations

import torch

from backends.base import FLOAT32, HALF, UP_TO_FLOAT32, Declaration, declarations

_OVER_INPUTS = (
    "defect: backward writes the gradients over gate and up, which their owner may still use; upstream calls it "
    "intended (Liger-Kernel#254, #272)"
)
_ROUNDED_SUMS = (
    "defect: backward adds up the gradient of an entry in the half type, and rounds each sum; it is experimental"
)
_NO_INDICES = "defect: no indices raise, since LigerEmbeddingFunction views them with a size of -1; it is experimental"
_OVER_LOGITS = (
    "defect: forward writes the gradient over the logits, which their owner may still use (Liger-Kernel#343, #272)"
)
_OVER_HEADS = (
    "defect: forward turns the queries in place and returns them, and backward the cotangent (Liger-Kernel#272)"
)
_STRIDED_LOGITS = (
    "defect: the gradient of logits that are not contiguous is the logits themselves, since a copy inside an "
    "autograd.Function does not require grad"
)
_LONG_ROWS = (
    "calculate_settings raises for rows of more than 65536 elements: 'Cannot launch Triton kernel since n = 65920 "
    "exceeds the recommended Triton blocksize = 65536.'"
)
_LONG_ROWS_OF_SOFTMAX = (
    "defect: a row of more than 65536 elements raises, and the kernel for such rows is never chosen (Liger-Kernel#1252)"
)
_PRODUCTS_IN_HALF = "defect: backward adds up the products of result and cotangent in the half type"

DECLARED = (
    Declaration("autograd-hooks", _OVER_LOGITS, operator="cross_entropy"),
    Declaration("autograd-hooks", _OVER_HEADS, operator="rotary"),
    Declaration("layouts", _STRIDED_LOGITS, operator="cross_entropy"),
    *declarations(
        "cross_entropy", _STRIDED_LOGITS, dict.fromkeys(("combinations", "drawn-calls", "wide-offsets"), UP_TO_FLOAT32)
    ),
    *declarations(
        "cross_entropy",
        "defect: backward scales the stored gradient in place, so a second backward scales it again",
        {"repeated-backward": UP_TO_FLOAT32},
    ),
    *declarations("geglu", _OVER_INPUTS, {"repeated-backward": UP_TO_FLOAT32}),
    *declarations("swiglu", _OVER_INPUTS, {"repeated-backward": UP_TO_FLOAT32}),
    *declarations(
        "rotary",
        _OVER_HEADS,
        {
            "combinations": UP_TO_FLOAT32,
            "inference-modes": UP_TO_FLOAT32,
            "memory": FLOAT32,
            "repeated-backward": UP_TO_FLOAT32,
        },
    ),
    Declaration("no-side-effects", _OVER_LOGITS, operator="cross_entropy"),
    Declaration("no-side-effects", _OVER_INPUTS, operator="geglu"),
    Declaration("no-side-effects", _OVER_HEADS, operator="rotary"),
    Declaration("no-side-effects", _OVER_INPUTS, operator="swiglu"),
    Declaration(
        "sizes",
        "defect: an empty batch raises, since cross_entropy_forward asks for the largest of no labels",
        operator="cross_entropy",
    ),
    Declaration("sizes", _NO_INDICES, operator="embedding"),
    *declarations("embedding", _NO_INDICES, {"drawn-calls": FLOAT32}, by_chance=True),  # few calls have no indices
    Declaration("sizes", _LONG_ROWS_OF_SOFTMAX, operator="softmax"),
    *declarations("softmax", _LONG_ROWS_OF_SOFTMAX, {"memory": FLOAT32}),
    *declarations("rms_norm", _LONG_ROWS, {"memory": FLOAT32}),
    *declarations("swiglu", _LONG_ROWS, {"memory": FLOAT32}),
    *declarations(
        "embedding",
        "LigerEmbeddingFunction adds up the gradient by atomic operations, in another order each time",
        {"determinism": UP_TO_FLOAT32},
    ),
    *declarations(
        "embedding",
        _ROUNDED_SUMS,
        dict.fromkeys(
            (
                "combinations",
                "concurrent-threads",
                "inference-modes",
                "repeated-backward",
                "uninitialised-memory",
                "vjp-parity",
            ),
            HALF,
        ),
    ),
    # With the order in which the atomic operations are rounded.
    *declarations("embedding", _ROUNDED_SUMS, dict.fromkeys(("drawn-calls", "layouts"), HALF), by_chance=True),
    # Sums of few elements in a half type are within what is allowed: other properties do not show it.
    *declarations("softmax", _PRODUCTS_IN_HALF, {"combinations": HALF, "layouts": HALF}),
    *declarations("softmax", _PRODUCTS_IN_HALF, {"concurrent-threads": (torch.float16,)}),
)
