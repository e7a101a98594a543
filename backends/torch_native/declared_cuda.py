"""What an H200 and an H100 with torch 2.11 showed of PyTorch's operators on CUDA.

`nine-operators.json` and `twenty-operators.json` in results/nvidia-h200 have the cells, docs/findings.md, "On a GPU",
a script for each cause.
"""

from __future__ import annotations

from backends.base import CUDA, FLOAT32, FLOAT64, HALF
from backends.torch_native.declaring import declared
from spec.contract import DTYPES

_ATTENTION = declared(
    "attention",
    "F.scaled_dot_product_attention on CUDA needs strides of a multiple of 16 bytes: with others float32 raises "
    "(cutlassF: no kernel found to launch), and in half types cuDNN reads other memory; for an empty batch in half "
    "types it returns None",
    {
        "autograd-hooks": FLOAT32,
        "combinations": FLOAT32 + HALF,
        "drawn-calls": FLOAT32 + HALF,
        "gradient-subsets": FLOAT32,
        "layouts": FLOAT32,
        "no-side-effects": FLOAT32,
    },
    CUDA,
) + declared(
    "attention",
    "F.scaled_dot_product_attention on CUDA rounds once more in float32: of one score far above the others the result "
    "is off by 9e-8, and a gradient that should be 0 is 8e-5",
    {"invariants": FLOAT32},
    CUDA,
)

_ATTENTION_VARLEN = (
    declared(
        "attention_varlen",
        "F.scaled_dot_product_attention on CUDA needs strides of a multiple of 16 bytes, those of the mask too: with "
        "others float32 raises (cutlassF: no kernel found to launch), and half types give NaN",
        {
            "autograd-hooks": FLOAT32,
            "combinations": FLOAT32 + HALF,
            "gradient-subsets": FLOAT32,
            "layouts": FLOAT32,
            "no-side-effects": FLOAT32,
            "wide-offsets": FLOAT32,
        },
        CUDA,
    )
    + declared(
        "attention_varlen",
        "F.scaled_dot_product_attention on CUDA needs strides of a multiple of 16 bytes: with others a kernel of "
        "float32 reads a misaligned address, which costs the process its device, and half types give NaN",
        {"drawn-calls": FLOAT32 + HALF},
        CUDA,
        by_chance=True,  # few drawn calls have such strides
    )
    + declared(
        "attention_varlen",
        "F.scaled_dot_product_attention on CUDA rounds once more in float32: of one score far above the others the "
        "result is off by 1.5e-7",
        {"invariants": FLOAT32},
        CUDA,
    )
)

_CAUSAL_CONV1D = declared(
    "causal_conv1d",
    "the contract's float32 is not TF32, which PyTorch allows cuDNN by default, as documented: depthwise F.conv1d on "
    "CUDA calls cuDNN above 2^31 elements, and the gradient of weight is off by 0.03",
    {"many-elements": FLOAT32},
    CUDA,
)

_ROUNDED = (
    "F.embedding on CUDA rounds the gradient of an entry to the half type while it adds it up: -0.219 where -0.211 is "
    "right in bfloat16, for an entry that is named a few times"
)
_EMBEDDING = (
    declared(
        "embedding",
        _ROUNDED,
        dict.fromkeys(
            (
                "combinations",
                "concurrent-threads",
                "inference-modes",
                "repeated-backward",
                "sizes",
                "uninitialised-memory",
                "vjp-parity",
            ),
            HALF,
        ),
        CUDA,
    )
    # Of few drawn calls, none may name an entry so that the order in which atomic operations add shows.
    + declared("embedding", _ROUNDED, {"drawn-calls": HALF}, CUDA, by_chance=True)
    + declared(
        "embedding",
        "F.embedding on CUDA adds up the gradient of an entry by atomic operations, in another order each time",
        {"determinism": FLOAT32 + FLOAT64},
        CUDA,
        by_chance=True,
    )
)

_GROUP_NORM = declared(
    "group_norm",
    "F.group_norm on CUDA keeps mean and reciprocal deviation in the half type, and reads them again in forward and "
    "backward: of a large mean the result is off by 0.1, and gradients of ordinary values by a tenth",
    dict.fromkeys(
        (
            "combinations",
            "concurrent-threads",
            "cuda-graphs",
            "current-stream",
            "drawn-calls",
            "forward-parity",
            "gradient-subsets",
            "inference-modes",
            "layouts",
            "no-special-treatment",
            "no-waiting",
            "other-device",
            "record-stream",
            "repeated-backward",
            "sizes",
            "uninitialised-memory",
            "vjp-parity",
            "wide-offsets",
        ),
        HALF,
    ),
    CUDA,
)

_GRU_CELL = declared(
    "gru_cell",
    "the fused kernel of torch.gru_cell on CUDA has no rule for fake tensors with dynamic sizes",
    {"compile": FLOAT32, "export": FLOAT32},
    CUDA,
)

_LSTM_CELL = (
    declared(
        "lstm_cell",
        "torch.lstm_cell without biases on CUDA raises on fake tensors: 'NoneType' object has no attribute 'device'",
        {"compile": FLOAT32, "export": FLOAT32, "fake-tensors": DTYPES, "reduce-overhead": FLOAT32},
        CUDA,
    )
    + declared(
        "lstm_cell",
        "torch.lstm_cell on CUDA has no batching rule: torch.func.vmap raises",
        {"functional-transforms": FLOAT64},
        CUDA,
    )
    + declared(
        "lstm_cell",
        "torch.lstm_cell on CUDA reads other elements where a stride times an index is above 2^31: new_h was 0.485 "
        "where -0.007 is right",
        {"wide-offsets": FLOAT32 + HALF},
        CUDA,
    )
)

DECLARED = (*_ATTENTION, *_ATTENTION_VARLEN, *_CAUSAL_CONV1D, *_EMBEDDING, *_GROUP_NORM, *_GRU_CELL, *_LSTM_CELL)
