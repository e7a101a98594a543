"""What PyTorch's operators do wrong: docs/findings.md shows each with a script."""

from __future__ import annotations

import torch

from backends.base import BFLOAT16, CUDA, FLOAT16, FLOAT32, FLOAT64, HALF
from backends.torch_native import declared_cuda
from backends.torch_native.declaring import declared
from backends.torch_native.onednn import computes_in
from spec.contract import DTYPES

#: The half types in which oneDNN computes on this processor, and those in which PyTorch's own loops run instead.
_WITH_ONEDNN = tuple(dtype for dtype in HALF if computes_in(dtype))
_WITHOUT_ONEDNN = tuple(dtype for dtype in HALF if dtype not in _WITH_ONEDNN)


def _of(dtypes: tuple[torch.dtype, ...]) -> tuple[torch.dtype, ...]:
    return tuple(dtype for dtype in dtypes if dtype in _WITHOUT_ONEDNN)


_CAUSAL_CONV1D = declared(
    "causal_conv1d",
    "depthwise F.conv1d on a CPU whose oneDNN lacks the half type adds up the gradient of the input over the taps, and "
    "that of the weight over the rows, in the half type: 1 - 1 + 2^-12 is 0, and over 4096 rows the gradient of the "
    "weight is 1.2% off in float16 and 88% in bfloat16",
    dict.fromkeys(
        (
            "combinations",
            "drawn-calls",
            "gradient-subsets",
            "harvested-sizes",
            "inference-modes",
            "repeated-backward",
            "sizes",
            "uninitialised-memory",
            "vjp-parity",
        ),
        _WITHOUT_ONEDNN,
    )
    | {"layouts": _of(FLOAT16)}
    | dict.fromkeys(("concurrent-threads", "no-special-treatment"), _of(BFLOAT16)),
)

_EMBEDDING = declared(
    "embedding",
    "F.embedding on the CPU adds up the gradient of an entry in the half type: of an entry that is named 4096 times "
    "it is 88% off in bfloat16 and 2.3% in float16",
    {
        "combinations": HALF,
        "concurrent-threads": BFLOAT16,
        "drawn-calls": HALF,
        "inference-modes": HALF,
        "repeated-backward": HALF,
        "sizes": HALF,
        "uninitialised-memory": HALF,
        "vjp-parity": HALF,
    },
)

_GROUP_NORM = declared(
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
        HALF,
    ),
)

_LAYER_NORM = declared(
    "layer_norm",
    "F.layer_norm on the CPU keeps mean and rstd, and adds up the gradients of weight and bias, in the half type: over "
    "4096 rows the gradient of bias is off by 4.7% in bfloat16 and 0.7% in float16, where one rounding makes 0.17% and "
    "0.02%",
    {
        "combinations": HALF,
        "concurrent-threads": HALF,
        "drawn-calls": HALF,
        "gradient-subsets": HALF,
        "inference-modes": HALF,
        "invariants": FLOAT16,
        "layouts": HALF,
        "no-special-treatment": HALF,
        "repeated-backward": HALF,
        "sizes": HALF,
        "uninitialised-memory": HALF,
        "vjp-parity": HALF,
        "wide-offsets": HALF,
    },
)

_ATTENTION = declared(
    "attention",
    "F.scaled_dot_product_attention on the CPU gives 0 where the query is NaN, as for a query that may look nowhere",
    dict.fromkeys(("combinations", "drawn-calls", "forward-parity", "vjp-parity"), DTYPES),
)

# In float16 the loss is wrong only for certain values, or many rows.
_CROSS_ENTROPY = declared(
    "cross_entropy",
    "F.cross_entropy on the CPU rounds the sum of exponentials to the half type, and adds up the losses of the rows in "
    "it: the loss of a row that is nearly sure is 0, and the mean of 65536 rows is 0.8% off in bfloat16 and NaN in "
    "float16",
    {
        "combinations": HALF,
        "concurrent-threads": BFLOAT16,
        "drawn-calls": HALF,
        "forward-parity": HALF,
        "inference-modes": BFLOAT16,
        "repeated-backward": BFLOAT16,
        "sizes": BFLOAT16,
        "uninitialised-memory": BFLOAT16,
        "vjp-parity": HALF,
    },
) + declared(
    "cross_entropy",
    "F.cross_entropy on CUDA adds up the losses of the rows, and of the classes with label smoothing, in float16: "
    "their sum overflows although the mean is finite, and so does the number of more than 65504 rows",
    dict.fromkeys(("drawn-calls", "forward-parity", "sizes", "vjp-parity"), FLOAT16),
    CUDA,
)

_LINEAR_ACT = declared(
    "linear_act",
    "F.gelu on a CPU with AVX512 is NaN at infinity, except in float64, and in float16 only with AVX512-FP16",
    dict.fromkeys(("drawn-calls", "forward-parity", "vjp-parity"), FLOAT32 + _WITH_ONEDNN)
    if torch.backends.cpu.get_cpu_capability() == "AVX512"
    else {},
)

_ROUNDED_SUM = (
    "F.log_softmax on the CPU rounds the sum of exponentials to the half type: of (8, 0) the first result is 0, where "
    "-0.000335 is right, and of (5, 0) it is 16% off in bfloat16 and 1.5% in float16"
)
_LOG_SOFTMAX = declared(
    "log_softmax",
    _ROUNDED_SUM,
    dict.fromkeys(("combinations", "drawn-calls", "forward-parity", "vjp-parity"), HALF),
) + declared(
    "log_softmax",
    _ROUNDED_SUM,
    {"layouts": FLOAT16},
    by_chance=True,  # an element is 2% beyond its allowance with AVX512-FP16, and just within it elsewhere
)

_LSTM_CELL = declared(
    "lstm_cell",
    "torch.lstm_cell without biases raises on fake CUDA tensors: 'NoneType' object has no attribute 'device'",
    {"fake-devices": FLOAT32},
) + declared(
    "lstm_cell",
    "torch.lstm_cell has no batching rule: torch.func.vmap raises",
    {"functional-transforms": FLOAT64},
)

_RMS_NORM = declared(
    "rms_norm",
    "F.rms_norm on CUDA computes the mean of squares as that of LayerNorm, by way of the mean: of a row with an "
    "infinite element every result is NaN, where those of finite elements should be 0",
    dict.fromkeys(("combinations", "drawn-calls", "forward-parity", "vjp-parity"), DTYPES),
    CUDA,
) + declared(
    "rms_norm",
    "F.rms_norm on CUDA under torch.compile with dynamic sizes takes a symbolic size for a number: torch 2.11 refuses "
    "a weight of shape [5] because normalized_shape was [-6917529026437868704]",
    {"compile": DTYPES},
    CUDA,
)

_SOFTMAX_ROUNDS = (
    "F.softmax on CUDA rounds the product of cotangent and output to the half type before its sum in backward: an "
    "element of the gradient is off by up to 1.6 times what one rounding at the end allows"
)
_SOFTMAX = declared(
    "softmax",
    _SOFTMAX_ROUNDS,
    {"combinations": HALF},
    CUDA,
) + declared(
    "softmax",
    _SOFTMAX_ROUNDS,
    {"drawn-calls": HALF},
    CUDA,
    by_chance=True,  # of 4800 drawn calls in half types 16 showed it
)

DECLARED = (
    *declared_cuda.DECLARED,
    *_ATTENTION,
    *_CAUSAL_CONV1D,
    *_CROSS_ENTROPY,
    *_EMBEDDING,
    *_GROUP_NORM,
    *_LAYER_NORM,
    *_LINEAR_ACT,
    *_LOG_SOFTMAX,
    *_LSTM_CELL,
    *_RMS_NORM,
    *_SOFTMAX,
)
