"""Candidates with faults that only a GPU shows; `plain` is the right one. `test_gpu_faults.py` judges them."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from harness.executing import cuda_errors
from tests.zoo.honest.lltm import Outputs, plain, with_gradient


def looks_at_a_value(*inputs: Tensor) -> Outputs:
    """Reads one number of the bias on the host, without using it."""
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
    """Launches on the default stream, whichever stream is current."""
    with torch.cuda.stream(torch.cuda.default_stream()):
        return plain(*inputs)


def on_the_first_device(*inputs: Tensor) -> Outputs:
    """Computes its result on device 0, wherever the inputs are, and copies it to their device."""
    home = [tensor.to("cuda:0") for tensor in inputs]
    new_h, new_cell = plain(*home)
    current = torch.device("cuda", torch.cuda.current_device())
    return new_h.to(current), new_cell.to(current)


def leaves_an_error(*inputs: Tensor) -> Outputs:
    """Copies one byte from nowhere, as a kernel is launched with an empty grid: refused, and nothing asks."""
    runtime = cuda_errors.runtime()
    if runtime is not None:
        runtime.cudaMemcpy(None, None, 1, 99)
    return plain(*inputs)


_KEPT: list[list[float]] = []


@torch.library.custom_op("lltm_gpu_faults::first_bias", mutates_args=())
def _first_bias(bias: Tensor) -> Tensor:
    """Returns the bias and keeps it; during graph capture returns the last kept bias, which the graph then replays."""
    if torch.cuda.is_current_stream_capturing():
        return torch.cat([bias.new_full((1,), value) for value in _KEPT[-1]])
    _KEPT.append(bias.tolist())  # as numbers: a kept tensor would be in the graph's private memory
    return bias.clone()


@_first_bias.register_fake
def _(bias: Tensor) -> Tensor:
    return torch.empty_like(bias)


_first_bias.register_autograd(lambda ctx, g: g)


def bias_of_an_earlier_call(input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor, old_cell: Tensor) -> Outputs:
    """A graph captures the bias of the previous call."""
    return plain(input, weights, torch.ops.lltm_gpu_faults.first_bias(bias), old_h, old_cell)


_PRIVATE: list[torch.cuda.Stream] = []


class _OnAPrivateStream(torch.autograd.Function):
    """The cell on a private stream, which waits for the caller's stream; the caller's then waits for it."""

    @staticmethod
    def forward(ctx: Any, says_so: bool, *inputs: Tensor) -> Outputs:
        with torch.enable_grad():
            ctx.own = [tensor.detach().requires_grad_() for tensor in inputs]
            ctx.made = _on_a_private_stream(lambda: plain(*ctx.own), says_so)
        ctx.says_so = says_so
        new_h, new_cell = (tensor.detach() for tensor in ctx.made)
        return new_h, new_cell

    @staticmethod
    def backward(ctx: Any, *cotangents: Tensor) -> tuple[Tensor | None, ...]:
        def gradients() -> tuple[Tensor, ...]:
            return torch.autograd.grad(ctx.made, ctx.own, cotangents, retain_graph=True)

        return None, *_on_a_private_stream(gradients, ctx.says_so)


def _on_a_private_stream(compute: Any, says_so: bool) -> tuple[Tensor, ...]:
    if not _PRIVATE:
        _PRIVATE.append(torch.cuda.Stream())  # type: ignore[no-untyped-call]
    (private,), current = _PRIVATE, torch.cuda.current_stream()
    private.wait_stream(current)
    with torch.cuda.stream(private):
        made: tuple[Tensor, ...] = compute()
    current.wait_stream(private)
    for tensor in made if says_so else ():
        tensor.record_stream(current)
    return made


def on_a_private_stream_in_secret(*inputs: Tensor) -> Outputs:
    """The allocator does not learn that the caller's stream reads memory that was allocated on another stream."""
    new_h, new_cell = _OnAPrivateStream.apply(False, *inputs)
    return new_h, new_cell


def on_a_private_stream(*inputs: Tensor) -> Outputs:
    """Right: the same with `record_stream`."""
    new_h, new_cell = _OnAPrivateStream.apply(True, *inputs)
    return new_h, new_cell
