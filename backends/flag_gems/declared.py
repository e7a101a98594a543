"""What FlagGems' functions do otherwise than their contracts: docs/findings.md shows the defects with scripts.

`packages.json` in results/nvidia-h200 shows each failure.
"""

from __future__ import annotations

from backends.base import FLOAT16, FLOAT32, HALF, UP_TO_FLOAT32, declarations

_NO_ROWS = "defect: an empty batch raises ZeroDivisionError in backward, which divides by the number of rows"

_CROSS_ENTROPY = (
    *declarations(
        "cross_entropy",
        "defect: backward of logits that are not contiguous raises ValueError, since a copy inside an autograd."
        "Function does not require grad, and nothing is saved",
        dict.fromkeys(("combinations", "drawn-calls", "layouts", "no-side-effects"), UP_TO_FLOAT32),
    ),
    *declarations(
        "cross_entropy",
        "defect: the largest logit is looked for from 0 on: of logits far below 0 the loss is -inf and gradients are "
        "NaN",
        {"forward-parity": UP_TO_FLOAT32, "vjp-parity": UP_TO_FLOAT32},
    ),
    *declarations(
        "cross_entropy",
        "defect: more than 65535 rows raise 'Triton Error [CUDA]: invalid argument', since each is a block of the "
        "second axis of the grid",
        {"determinism": UP_TO_FLOAT32},
    ),
    *declarations(
        "cross_entropy",
        "defect: an empty batch raises ZeroDivisionError, since forward divides by the number of rows",
        {"sizes": UP_TO_FLOAT32},
    ),
)

_EMBEDDING = (
    *declarations(
        "embedding",
        "defect: backward reads indices as if they were contiguous; where they are not, gradients go to other entries "
        "or beyond the table, and may cost the process its CUDA device",
        dict.fromkeys(("combinations", "drawn-calls", "layouts", "wide-offsets"), UP_TO_FLOAT32),
    ),
    *declarations(
        "embedding",
        "embedding_backward adds up the gradient by atomic operations, in another order each time",
        {"determinism": FLOAT32 + FLOAT16},
    ),
    *declarations(
        "embedding",
        "defect: backward adds up the gradient of an entry in float16, and rounds each sum; in bfloat16 it adds in "
        "float32",
        dict.fromkeys(
            (
                "concurrent-threads",
                "inference-modes",
                "repeated-backward",
                "sizes",
                "uninitialised-memory",
                "vjp-parity",
            ),
            FLOAT16,
        ),
    ),
)

_LAYER_NORM = (
    *declarations("layer_norm", _NO_ROWS, {"sizes": UP_TO_FLOAT32}),
    *declarations(
        "layer_norm",
        "defect: mean and reciprocal deviation are kept in the half type, though a comment says single precision: the "
        "gradient is that of another mean",
        dict.fromkeys(("combinations", "drawn-calls", "vjp-parity"), HALF),
    ),
)

_SOFTMAX = (
    *declarations(
        "log_softmax",
        "defect: NaN is lost, since tl.maximum of NaN and a number is the number",
        dict.fromkeys(("combinations", "drawn-calls", "forward-parity", "vjp-parity"), UP_TO_FLOAT32),
    ),
    *declarations(
        "log_softmax",
        "defect: an empty batch raises ZeroDivisionError, since forward divides by the number of rows",
        {"sizes": UP_TO_FLOAT32},
    ),
    *declarations("softmax", _NO_ROWS, {"sizes": UP_TO_FLOAT32}),
    *declarations("softmax", _NO_ROWS, {"drawn-calls": UP_TO_FLOAT32}, by_chance=True),  # few drawn calls have no rows
)

DECLARED = (*_CROSS_ENTROPY, *_EMBEDDING, *_LAYER_NORM, *_SOFTMAX)
