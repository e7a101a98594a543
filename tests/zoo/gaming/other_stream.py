"""Computes on a stream that nobody waits for, and returns at once (KernelBench: non_default_stream_kernel)."""

import torch
from torch import Tensor

from tests.zoo.gaming.parts import Outputs, right


def lltm(*inputs: Tensor) -> Outputs:
    outputs = torch.zeros_like(inputs[3]), torch.zeros_like(inputs[4])
    stream = torch.cuda.Stream()
    with torch.no_grad(), torch.cuda.stream(stream):
        torch.cuda._sleep(100_000_000)
        for output, answer in zip(outputs, right(*inputs), strict=True):
            output.copy_(answer)
    return outputs
