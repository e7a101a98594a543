"""Candidates that are wrong in ways that only a GPU shows; `plain` is the honest one. `test_gpu_faults.py` asks."""

from __future__ import annotations

import torch
from torch import Tensor

from tests.meta.honest.lltm import Outputs, plain, with_gradient


def looks_at_a_value(*inputs: Tensor) -> Outputs:
    """Reads one number of the bias on the host, and makes nothing of it."""
    inputs[2].flatten()[0].item()
    return plain(*inputs)


def _wait(g: Tensor) -> Tensor:
    torch.cuda.synchronize()
    return g


def waits_in_backward(*inputs: Tensor) -> Outputs:
    """Backward waits until the whole GPU is idle."""
    first, *rest = inputs
    outputs: Outputs = plain(with_gradient(first, _wait), *rest)
    return outputs


def on_the_default_stream(*inputs: Tensor) -> Outputs:
    """Launches on the default stream, whichever is current."""
    with torch.cuda.stream(torch.cuda.default_stream()):
        return plain(*inputs)


def on_the_first_device(*inputs: Tensor) -> Outputs:
    """Makes its result on device 0, wherever the inputs are, and copies it to them."""
    home = [tensor.to("cuda:0") for tensor in inputs]
    new_h, new_cell = plain(*home)
    current = torch.device("cuda", torch.cuda.current_device())
    return new_h.to(current), new_cell.to(current)


_KEPT: list[Tensor] = []


@torch.library.custom_op("lltm_gpu_faults::first_bias", mutates_args=())
def _first_bias(bias: Tensor) -> Tensor:
    """The bias, which is kept; while a graph is captured, the one that was kept last, which it then replays."""
    if torch.cuda.is_current_stream_capturing():
        return _KEPT[-1].clone()
    _KEPT.append(bias.clone())
    return bias.clone()


@_first_bias.register_fake
def _(bias: Tensor) -> Tensor:
    return torch.empty_like(bias)


_first_bias.register_autograd(lambda ctx, g: g)


def bias_of_an_earlier_call(input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor, old_cell: Tensor) -> Outputs:
    """What a graph captures is the bias of the call before it."""
    return plain(input, weights, torch.ops.lltm_gpu_faults.first_bias(bias), old_h, old_cell)
