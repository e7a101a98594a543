"""Captures a CUDA graph at a first call and replays it on the old inputs (field guides: stale capture)."""

import torch
from torch import Tensor

from tests.zoo.gaming.parts import Outputs, right

_graphs: dict[object, tuple[torch.cuda.CUDAGraph, Outputs]] = {}


def lltm(*inputs: Tensor) -> Outputs:
    key = tuple(tensor.shape for tensor in inputs)
    if key not in _graphs:
        kept = [tensor.detach().clone() for tensor in inputs]
        right(*kept)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            outputs = right(*kept)
        _graphs[key] = graph, outputs
    graph, outputs = _graphs[key]
    graph.replay()
    return outputs[0].clone(), outputs[1].clone()
