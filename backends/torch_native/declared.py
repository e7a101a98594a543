"""What PyTorch's operators do wrong: docs/findings.md shows each with a script."""

from __future__ import annotations

from collections.abc import Mapping

import torch

from backends.base import CPU, CUDA, Declaration
from spec.contract import DTYPES

_BOTH = (torch.float16, torch.bfloat16)
_BFLOAT16, _FLOAT16 = (torch.bfloat16,), (torch.float16,)


def _declared(
    operator: str, reason: str, properties: Mapping[str, tuple[torch.dtype, ...]], device: str = CPU
) -> tuple[Declaration, ...]:
    return tuple(
        Declaration(property, reason, operator=operator, device=device, dtype=dtype)
        for property, dtypes in properties.items()
        for dtype in dtypes
    )


_CAUSAL_CONV1D = _declared(
    "causal_conv1d",
    "depthwise F.conv1d on the CPU in float16 adds up the gradient of the input over the taps, and that of the weight "
    "over the rows, in float16: 1 - 1 + 2^-12 is 0, and over 4096 rows the gradient of the weight is 1.2% off",
    dict.fromkeys(
        (
            "combinations",
            "drawn-calls",
            "inference-modes",
            "repeated-backward",
            "sizes",
            "uninitialised-memory",
            "vjp-parity",
        ),
        _FLOAT16,
    ),
)

_EMBEDDING = _declared(
    "embedding",
    "F.embedding on the CPU adds up the gradient of an entry in the half type: of an entry that is named 4096 times "
    "it is 88% off in bfloat16 and 2.3% in float16",
    {
        "combinations": _BOTH,
        "concurrent-threads": _BFLOAT16,
        "drawn-calls": _BOTH,
        "inference-modes": _BOTH,
        "repeated-backward": _BOTH,
        "sizes": _BOTH,
        "uninitialised-memory": _BOTH,
        "vjp-parity": _BOTH,
    },
)

_GROUP_NORM = _declared(
    "group_norm",
    "F.group_norm on the CPU keeps mean and rstd in the half type for backward: at a mean of 20 deviations in "
    "bfloat16, of 160 in float16, the gradient is 5% off, and without a mean by more than one rounding",
    dict.fromkeys(
        (
            "combinations",
            "concurrent-threads",
            "drawn-calls",
            "gradient-subsets",
            "inference-modes",
            "layouts",
            "no-special-treatment",
            "repeated-backward",
            "sizes",
            "uninitialised-memory",
            "vjp-parity",
            "wide-offsets",
        ),
        _BOTH,
    ),
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

_ATTENTION = _declared(
    "attention",
    "F.scaled_dot_product_attention on the CPU gives 0 where the query is NaN, as for a query that may look nowhere",
    {
        "combinations": DTYPES,
        "drawn-calls": DTYPES,
        "forward-parity": (torch.float32, *_BOTH),
        "vjp-parity": (torch.float32, *_BOTH),
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
) + _declared(
    "cross_entropy",
    "F.cross_entropy on CUDA adds up the losses of the rows, and of the classes with label smoothing, in float16: "
    "their sum overflows although the mean is finite, and so does the number of more than 65504 rows",
    dict.fromkeys(("combinations", "drawn-calls", "forward-parity", "sizes", "vjp-parity"), _FLOAT16),
    CUDA,
)

_LINEAR_ACT = _declared(
    "linear_act",
    "F.gelu on a CPU with AVX512 is NaN at infinity in float32 and bfloat16",
    {
        "combinations": _BFLOAT16,
        **dict.fromkeys(("drawn-calls", "forward-parity", "vjp-parity"), (torch.float32, torch.bfloat16)),
    }
    if torch.backends.cpu.get_cpu_capability() == "AVX512"
    else {},
)

_LOG_SOFTMAX = _declared(
    "log_softmax",
    "F.log_softmax on the CPU rounds the sum of exponentials to the half type: of (8, 0) the first result is 0, where "
    "-0.000335 is right, and of (5, 0) it is 16% off in bfloat16 and 1.5% in float16",
    dict.fromkeys(("combinations", "drawn-calls", "forward-parity", "vjp-parity"), _BOTH),
)

_RMS_NORM = _declared(
    "rms_norm",
    "F.rms_norm on CUDA computes the mean of squares as that of LayerNorm, by way of the mean: of a row with an "
    "infinite element every result is NaN, where those of finite elements should be 0",
    dict.fromkeys(("combinations", "drawn-calls", "forward-parity", "vjp-parity"), DTYPES),
    CUDA,
) + _declared(
    "rms_norm",
    "F.rms_norm on CUDA under torch.compile with dynamic sizes takes a symbolic size for a number: torch 2.11 refuses "
    "a weight of shape [5] because normalized_shape was [-6917529026437868704]",
    {"compile": DTYPES},
    CUDA,
)

_SOFTMAX = _declared(
    "softmax",
    "F.softmax on CUDA rounds the product of cotangent and output to the half type before its sum in backward: an "
    "element of the gradient is off by up to 1.6 times what one rounding at the end allows",
    {
        "combinations": _BOTH,
        "concurrent-threads": _BFLOAT16,
        "layouts": _BFLOAT16,
        "sizes": _FLOAT16,
    },
    CUDA,
)

DECLARED = (
    *_ATTENTION,
    *_CAUSAL_CONV1D,
    *_CROSS_ENTROPY,
    *_EMBEDDING,
    *_GROUP_NORM,
    *_LAYER_NORM,
    *_LINEAR_ACT,
    *_LOG_SOFTMAX,
    *_RMS_NORM,
    *_SOFTMAX,
)
