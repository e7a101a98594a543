"""A reference under torch.compile. It checks nothing: the operator's file checks arguments outside of it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensor

#: Variants of one function that are compiled before Dynamo gives up: dtypes, layouts, sizes of 0 and 1, which inputs
#: want a gradient, and their combinations. PyTorch's own limit is 8. 1024 were too few for layer_norm, which has five
#: forms, in a process that judges it in several dtypes.
VARIANTS = sys.maxsize


@cache
def compiled(reference: Callable[..., Any]) -> Callable[..., Any]:
    """`reference`, compiled as one graph at its first call and again for each kind of call."""
    configuration = torch._dynamo.config
    configuration.recompile_limit = VARIANTS
    configuration.accumulated_recompile_limit = VARIANTS
    # By default a compiled backward reuses the memory of saved tensors, and raises with retain_graph=True.
    torch._functorch.config.donated_buffer = False
    function: Callable[..., Any] = torch.compile(reference, fullgraph=True, dynamic=True)

    def call(*tensors: Tensor) -> Any:
        # Compiled code would access memory that a fake tensor does not have; on CUDA that ends the context.
        fake = any(isinstance(tensor, FakeTensor) for tensor in tensors)
        return reference(*tensors) if fake else function(*tensors)

    return call
