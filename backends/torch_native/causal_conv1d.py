"""Depthwise causal convolution as F.conv1d, padded in front and cut behind, as Mamba does without its own kernel."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from backends._python.causal_conv1d import check_causal_conv1d_arguments
from backends.autocast import by_rule
from backends.base import PythonFunction
from backends.torch_native.onednn import computes_in
from spec.causal_conv1d import OPERATOR

#: Taps of a filter from which oneDNN's kernel for float16 may never end, and whether this processor has that kernel.
_LONG, _HAS_KERNEL = 15, computes_in(torch.float16)


@by_rule(OPERATOR)
def causal_conv1d(input: Tensor, weight: Tensor, bias: Tensor | None = None, activation: str | None = None) -> Tensor:
    """The output, of the shape of input (batch, channels, length); the activation is None or "silu"."""
    check_causal_conv1d_arguments(input, weight, bias, activation)
    z = _convolved(input, weight, bias)
    return z if activation is None else F.silu(z)


def _convolved(input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """z, by a depthwise kernel. A single channel is no depthwise convolution to PyTorch, so it is computed twice.
    Long filters are computed in float32 where oneDNN may never return in float16.

    On a GPU a single channel, and memory with the channels last, go to cuDNN, whose float32 is TF32 unless
    torch.backends.cudnn.allow_tf32 is False. That is a setting of the process, of forward and of backward, so a
    function must not change it. On the CPU oneDNN computes a single channel, and looks one step ahead in bfloat16:
    docs/findings.md.
    """
    channels, length = input.shape[1:]
    if _may_never_end(input, weight):
        wide = None if bias is None else bias.float()
        return _convolved(input.float(), weight.float(), wide).to(input.dtype)
    if channels == 1:
        twice = None if bias is None else bias.expand(2)
        return _convolved(input.expand(-1, 2, -1), weight.expand(2, -1), twice)[:, :1]
    padding = weight.shape[1] - 1
    whole = F.conv1d(input.contiguous(), weight.unsqueeze(1), bias, padding=padding, groups=channels)
    return whole[..., :length]


def _may_never_end(input: Tensor, weight: Tensor) -> bool:
    """Whether oneDNN's kernel for float16 would get a long filter: docs/findings.md."""
    is_its_own = _HAS_KERNEL and input.dtype == torch.float16 and input.device.type == "cpu"
    return is_its_own and weight.shape[1] >= _LONG


IMPLEMENTATION = PythonFunction(causal_conv1d)
