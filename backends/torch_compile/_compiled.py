"""A reference under torch.compile, as a function that checks nothing: the operator's file does that, outside of it."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensor

#: Variants of one function that are compiled before Dynamo gives up: dtypes, layouts, sizes of 0 and 1, which inputs
#: want a gradient, and their combinations. PyTorch's own limit is 8.
VARIANTS = 1024


@cache
def compiled(reference: Callable[..., Any]) -> Callable[..., Any]:
    """`reference`, compiled at its first call and anew for each kind of call, whole or not at all."""
    configuration = torch._dynamo.config
    configuration.recompile_limit = max(configuration.recompile_limit, VARIANTS)
    configuration.accumulated_recompile_limit = max(configuration.accumulated_recompile_limit, 4 * VARIANTS)
    # A compiled backward gives its saved tensors away by default, and raises where the graph is to be retained.
    torch._functorch.config.donated_buffer = False
    function: Callable[..., Any] = torch.compile(reference, fullgraph=True, dynamic=True)

    def call(*tensors: Tensor) -> Any:
        # What is compiled would run on memory that a fake tensor does not have, and on CUDA end the context.
        fake = any(isinstance(tensor, FakeTensor) for tensor in tensors)
        return reference(*tensors) if fake else function(*tensors)

    return call
