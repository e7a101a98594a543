"""Right, but with a tensor that the call makes for itself, on the device of its inputs in one way or another."""

import contextlib

import torch
import torch.nn.functional as F
from torch import Tensor

from backends.base import check_arguments
from spec.lltm import OPERATOR
from tests.zoo.honest.lltm import Outputs, elementwise, plain
from tests.zoo.registry import control


def _gates(input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor, old_cell: Tensor) -> Tensor:
    check_arguments(OPERATOR, input, weights, bias, old_h, old_cell)
    return F.linear(torch.cat([old_h, input], dim=1), weights, bias)


def _cell(gates: Tensor, old_cell: Tensor) -> Outputs:
    z_i, z_o, z_k = gates.chunk(3, dim=1)
    return elementwise(z_i, z_o, z_k, old_cell)


@control
def zeros_like(input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor, old_cell: Tensor) -> Outputs:
    """A temporary is made by zeros_like."""
    z = _gates(input, weights, bias, old_h, old_cell)
    return _cell(z + torch.zeros_like(z), old_cell)


@control
def new_zeros(input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor, old_cell: Tensor) -> Outputs:
    """A temporary is made by a method of an input."""
    z = _gates(input, weights, bias, old_h, old_cell)
    return _cell(z + input.new_zeros(z.shape), old_cell)


@control
def device_of_the_input(input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor, old_cell: Tensor) -> Outputs:
    """A temporary is made with `device=input.device`."""
    z = _gates(input, weights, bias, old_h, old_cell)
    return _cell(z + torch.zeros(z.shape, dtype=z.dtype, device=input.device), old_cell)


@control
def index_looked_up(input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor, old_cell: Tensor) -> Outputs:
    """A temporary is made on a device written with the index that the input has."""
    z = _gates(input, weights, bias, old_h, old_cell)
    device = f"cuda:{input.get_device()}" if input.is_cuda else "cpu"
    return _cell(z + torch.zeros(z.shape, dtype=z.dtype, device=device), old_cell)


@control
def device_made_current(input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor, old_cell: Tensor) -> Outputs:
    """A temporary is made on "cuda", while the GPU of the input is the current one."""
    z = _gates(input, weights, bias, old_h, old_cell)
    with torch.cuda.device(input.device) if input.is_cuda else contextlib.nullcontext():
        zeros = torch.zeros(z.shape, dtype=z.dtype, device="cuda" if input.is_cuda else "cpu")
    return _cell(z + zeros, old_cell)


@control
def number_on_the_cpu(input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor, old_cell: Tensor) -> Outputs:
    """A number is a tensor on the CPU, wherever the inputs are: PyTorch accepts that."""
    z = _gates(input, weights, bias, old_h, old_cell)
    return _cell(z * torch.ones((), dtype=z.dtype), old_cell)


@control(cpu_alone="it refuses the tensors of a GPU")
def refuses_gpus(input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor, old_cell: Tensor) -> Outputs:
    """It is for the CPU alone, and says so."""
    check_arguments(OPERATOR, input, weights, bias, old_h, old_cell)
    if input.device.type != "cpu":
        raise NotImplementedError(f"lltm: input was on {input.device}, but should be on the CPU")
    return plain(input, weights, bias, old_h, old_cell)
