"""nn.LSTMCell without biases, and nn.GRUCell, on CUDA: PyTorch cannot infer the shapes of what they return."""

from collections.abc import Callable
from functools import partial

import torch
from torch._subclasses.fake_tensor import FakeTensorMode


def told(call: Callable[[], object]) -> str:
    """`works`, or the kind of the error."""
    try:
        call()
    except Exception as error:
        return f"raised {type(error).__name__}"
    return "works"


x, shapes = torch.randn(3, 4, device="cuda"), ({0: torch.export.Dim.DYNAMIC},)
for name in ("LSTMCell", "GRUCell"):
    for bias in (True, False):
        cell = getattr(torch.nn, name)(4, 5, bias=bias, device="cuda")
        print(f"nn.{name}, bias={bias}: eager {told(partial(cell, x))}", end="")
        with FakeTensorMode(allow_non_fake_inputs=True) as mode:
            print(f", fake tensors {told(partial(cell, mode.from_tensor(x)))}", end="")
        compiled = torch.compile(cell, backend="eager", fullgraph=True, dynamic=True)
        print(f", torch.compile(fullgraph=True, dynamic=True) {told(partial(compiled, x))}", end="")
        exported = partial(torch.export.export, cell, (x,), dynamic_shapes=shapes)
        print(f", torch.export of any batch {told(exported)}")
