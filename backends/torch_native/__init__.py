"""PyTorch's own operators, the usual choice of a user, behind the contract's argument checks."""

from backends.base import CPU, CUDA, Backend
from backends.torch_native import declared, peers

BACKEND = Backend(
    summary="PyTorch's own operators: F.linear, F.layer_norm, F.softmax",
    devices=(CPU, CUDA),
    declared=declared.DECLARED,
    absent={
        "lltm": "PyTorch has no such cell: torch.nn.LSTMCell has a forget gate, and tanh where LLTM has elu",
        "rotary": "PyTorch has no rotary embedding",
        "scan": "PyTorch has no such scan: torch.cumsum has no gates, and associative_scan no public name",
        "lltm_sequence": "PyTorch has no such network: torch.nn.LSTM has a forget gate, and tanh where LLTM has elu",
    },
    beside={"lltm": peers.CELL, "lltm_sequence": peers.NETWORK},
)
