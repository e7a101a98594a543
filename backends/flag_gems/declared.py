"""What FlagGems' functions do otherwise than their contracts: docs/findings.md shows the defects with scripts.

`results/nvidia-h200/packages.json` shows each failure, in float32 and bfloat16.
"""

from __future__ import annotations

from backends.base import BFLOAT16, FLOAT32, declarations

_BOTH = FLOAT32 + BFLOAT16

_CROSS_ENTROPY = (
    *declarations(
        "cross_entropy",
        "defect: backward of logits that are not contiguous raises ValueError, since a copy inside an autograd."
        "Function does not require grad, and nothing is saved",
        dict.fromkeys(("combinations", "drawn-calls", "layouts", "no-side-effects"), _BOTH),
    ),
    *declarations(
        "cross_entropy",
        "defect: the largest logit is looked for from 0 on: of logits far below 0 the loss is -inf and gradients are "
        "NaN",
        {"forward-parity": _BOTH, "vjp-parity": _BOTH},
    ),
    *declarations(
        "cross_entropy",
        "defect: more than 65535 rows raise 'Triton Error [CUDA]: invalid argument', since each is a block of the "
        "second axis of the grid",
        {"determinism": _BOTH},
    ),
    *declarations(
        "cross_entropy",
        "defect: an empty batch raises ZeroDivisionError, since forward divides by the number of rows",
        {"sizes": _BOTH},
    ),
)

_EMBEDDING = (
    *declarations(
        "embedding",
        "defect: backward reads indices as if they were contiguous; where they are not, gradients go to other entries "
        "or beyond the table, and may cost the process its CUDA device",
        dict.fromkeys(("combinations", "drawn-calls", "layouts"), _BOTH),
    ),
    *declarations(
        "embedding",
        "embedding_backward adds up the gradient by atomic operations, in another order each time",
        {"determinism": FLOAT32},
    ),
)

_LAYER_NORM = (
    *declarations(
        "layer_norm",
        "defect: an empty batch raises ZeroDivisionError in backward, which divides by the number of rows",
        {"sizes": _BOTH},
    ),
    *declarations(
        "layer_norm",
        "defect: mean and reciprocal deviation are kept in the half type, though a comment says single precision: the "
        "gradient is that of another mean",
        dict.fromkeys(("combinations", "drawn-calls", "vjp-parity"), BFLOAT16),
    ),
)

_SOFTMAX = (
    *declarations(
        "log_softmax",
        "defect: NaN is lost, since tl.maximum of NaN and a number is the number",
        dict.fromkeys(("combinations", "drawn-calls", "forward-parity", "vjp-parity"), _BOTH),
    ),
    *declarations(
        "log_softmax",
        "defect: an empty batch raises ZeroDivisionError, since forward divides by the number of rows",
        {"sizes": _BOTH},
    ),
    *declarations(
        "softmax",
        "defect: an empty batch raises ZeroDivisionError in backward, which divides by the number of rows",
        {"sizes": _BOTH},
    ),
)

DECLARED = (*_CROSS_ENTROPY, *_EMBEDDING, *_LAYER_NORM, *_SOFTMAX)
