"""What PyTorch's operators do wrong in half types on the CPU: docs/findings.md shows each with a script."""

from __future__ import annotations

from collections.abc import Mapping

import torch

from backends.base import CPU, Declaration

_BOTH = (torch.float16, torch.bfloat16)
_BFLOAT16 = (torch.bfloat16,)


def _declared(operator: str, reason: str, properties: Mapping[str, tuple[torch.dtype, ...]]) -> tuple[Declaration, ...]:
    return tuple(
        Declaration(property, reason, operator=operator, device=CPU, dtype=dtype)
        for property, dtypes in properties.items()
        for dtype in dtypes
    )


_LAYER_NORM = _declared(
    "layer_norm",
    "F.layer_norm on the CPU keeps mean and rstd, and adds up the gradients of weight and bias, in the half type: over "
    "4096 rows the gradient of bias is off by 4.7% in bfloat16 and 0.7% in float16, where one rounding makes 0.17% and "
    "0.02%",
    {
        "combinations": _BOTH,
        "concurrent-threads": _BOTH,
        "drawn-calls": _BOTH,
        "gradient-subsets": _BOTH,
        "inference-modes": _BOTH,
        "invariants": (torch.float16,),
        "layouts": _BOTH,
        "no-special-treatment": _BFLOAT16,
        "repeated-backward": _BOTH,
        "sizes": _BOTH,
        "uninitialised-memory": _BOTH,
        "vjp-parity": _BOTH,
        "wide-offsets": _BOTH,
    },
)

# In float16 the loss is wrong only for certain values, or many rows.
_CROSS_ENTROPY = _declared(
    "cross_entropy",
    "F.cross_entropy on the CPU rounds the sum of exponentials to the half type, and adds up the losses of the rows in "
    "it: the loss of a row that is nearly sure is 0, and the mean of 65536 rows is 0.8% off in bfloat16 and NaN in "
    "float16",
    {
        "combinations": _BOTH,
        "concurrent-threads": _BFLOAT16,
        "drawn-calls": _BOTH,
        "forward-parity": _BOTH,
        "inference-modes": _BFLOAT16,
        "repeated-backward": _BFLOAT16,
        "sizes": _BFLOAT16,
        "uninitialised-memory": _BFLOAT16,
        "vjp-parity": _BOTH,
    },
)

_LOG_SOFTMAX = _declared(
    "log_softmax",
    "F.log_softmax on the CPU rounds the sum of exponentials to the half type: of (8, 0) the first result is 0, where "
    "-0.000335 is right, and of (5, 0) it is 16% off in bfloat16 and 1.5% in float16",
    dict.fromkeys(("combinations", "drawn-calls", "forward-parity", "vjp-parity"), _BOTH),
)

DECLARED = (*_CROSS_ENTROPY, *_LAYER_NORM, *_LOG_SOFTMAX)
