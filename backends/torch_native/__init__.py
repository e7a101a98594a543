"""PyTorch's own operators, the usual choice of a user, behind the contract's argument checks."""

import torch

from backends.base import CPU, CUDA, Backend, Declaration
from backends.torch_native import peers

_HALF_ON_CPU = (
    "F.layer_norm on the CPU keeps mean and rstd, and adds up the gradients of weight and bias, in the half type: over "
    "4096 rows the gradient of bias is off by 4.7% in bfloat16 and 0.7% in float16, where one rounding makes 0.17% and "
    "0.02%"
)
_LOSS_ON_CPU = (
    "F.cross_entropy on the CPU rounds the sum of exponentials to the half type, and adds up the losses of the rows in "
    "it: the loss of a row that is nearly sure is 0, and the mean of 65536 rows is 0.8% off in bfloat16 and NaN in "
    "float16"
)
#: Half types in which the loss is wrong, by property. In float16 it is wrong only for certain values, or many rows.
_LOSS_PROPERTIES = {
    "combinations": (torch.float16, torch.bfloat16),
    "concurrent-threads": (torch.bfloat16,),
    "drawn-calls": (torch.float16, torch.bfloat16),
    "forward-parity": (torch.float16, torch.bfloat16),
    "inference-modes": (torch.bfloat16,),
    "repeated-backward": (torch.bfloat16,),
    "sizes": (torch.bfloat16,),
    "uninitialised-memory": (torch.bfloat16,),
    "vjp-parity": (torch.float16, torch.bfloat16),
}
_GRADIENT_PROPERTIES = (
    "combinations",
    "concurrent-threads",
    "drawn-calls",
    "gradient-subsets",
    "inference-modes",
    "layouts",
    "repeated-backward",
    "sizes",
    "uninitialised-memory",
    "vjp-parity",
    "wide-offsets",
)

BACKEND = Backend(
    summary="PyTorch's own operators: F.linear, F.layer_norm",
    devices=(CPU, CUDA),
    declared=(
        *(
            Declaration(property, _HALF_ON_CPU, operator="layer_norm", device=CPU, dtype=dtype)
            for property in _GRADIENT_PROPERTIES
            for dtype in (torch.float16, torch.bfloat16)
        ),
        *(
            Declaration(property, _LOSS_ON_CPU, operator="cross_entropy", device=CPU, dtype=dtype)
            for property, dtypes in _LOSS_PROPERTIES.items()
            for dtype in dtypes
        ),
        Declaration("no-special-treatment", _HALF_ON_CPU, operator="layer_norm", device=CPU, dtype=torch.bfloat16),
        Declaration("invariants", _HALF_ON_CPU, operator="layer_norm", device=CPU, dtype=torch.float16),
    ),
    absent={
        "lltm": "PyTorch has no such cell: torch.nn.LSTMCell has a forget gate, and tanh where LLTM has elu",
        "lltm_sequence": "PyTorch has no such network: torch.nn.LSTM has a forget gate, and tanh where LLTM has elu",
    },
    beside={"lltm": peers.CELL, "lltm_sequence": peers.NETWORK},
)
