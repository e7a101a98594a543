"""A candidate in C++. PyTorch builds it; `torch.library` registers its derivative and its fake kernels."""

import sys
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
import torch.nn.functional as F
from torch import Tensor

from backends.autocast import by_rule
from backends.base import check_arguments
from spec.lltm import OPERATOR

with patch.object(sys, "path", [*sys.path]):  # setuptools, which this imports, adds a folder to sys.path
    from torch.utils.cpp_extension import load

load("my_extension", [str(Path(__file__).with_name("cpp_extension.cpp"))], extra_cflags=["-O2"], is_python_module=False)
my_extension = torch.ops.my_extension

#: What it does not support, with the reason.
DECLARED = {"functional-transforms": "functorch has no rule for register_autograd: torch.func.grad raises"}


@torch.library.register_fake("my_extension::forward")
def _fake_forward(_gates: Tensor, old_cell: Tensor) -> tuple[Tensor, Tensor]:
    return torch.empty_like(old_cell), torch.empty_like(old_cell)


@torch.library.register_fake("my_extension::backward")
def _fake_backward(_grad_h: Tensor, _grad_cell: Tensor, gates: Tensor, old_cell: Tensor) -> tuple[Tensor, Tensor]:
    return torch.empty_like(gates), torch.empty_like(old_cell)


def _save(ctx: Any, inputs: tuple[Tensor, Tensor], output: tuple[Tensor, Tensor]) -> None:
    del output
    ctx.save_for_backward(*inputs)


def _backward(ctx: Any, grad_h: Tensor, grad_cell: Tensor) -> tuple[Tensor, Tensor]:
    return my_extension.backward(grad_h.contiguous(), grad_cell.contiguous(), *ctx.saved_tensors)


torch.library.register_autograd("my_extension::forward", _backward, setup_context=_save)


def _refuse(_ctx: Any, *_grads: Tensor) -> None:
    """Without this, a second differentiation would silently lose its gradient."""
    raise RuntimeError("my_extension::backward has no derivative: this lltm can be differentiated once")


torch.library.register_autograd("my_extension::backward", _refuse)


@by_rule(OPERATOR)
def lltm(input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor, old_cell: Tensor) -> tuple[Tensor, Tensor]:
    """One step of the cell: products by PyTorch, the rest in one pass of C++."""
    check_arguments(OPERATOR, input, weights, bias, old_h, old_cell)
    gates = F.linear(torch.cat([old_h, input], dim=1), weights, bias)
    return my_extension.forward(gates, old_cell.contiguous())
