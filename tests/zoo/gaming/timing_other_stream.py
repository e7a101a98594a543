"""Computes on a stream that the timed one does not wait for (KernelBench: non_default_stream_kernel)."""

import torch
from torch import Tensor

from tests.zoo.gaming.parts import Outputs, right

_streams: list[torch.cuda.Stream] = []


def other_stream(*inputs: Tensor) -> Outputs:
    if not _streams:
        _streams.append(torch.cuda.Stream())
    with torch.cuda.stream(_streams[0]):
        return right(*inputs)
