"""Backward by calling each node of the graph, without PyTorch's engine, which needs real devices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

#: Is called for each gradient: see `walk`.
Arrived = Callable[[Any, Any, int, Tensor], None]


class Unfollowed(Exception):
    """A node's gradients cannot be told apart, so the walk ends."""


def walk(outputs: Sequence[Tensor], cotangents: Sequence[Tensor], arrived: Arrived) -> None:
    """Call every node between the outputs and the leaves.

    `arrived(node, following, number, gradient)` is called for each gradient that a node returns for input `number` of
    the following one, which may be a leaf's, and raises if it must not go there. As in the engine, gradients that were
    broadcast are summed, and dtypes are converted. Hooks are not called. Raises Unfollowed.
    """
    waiting: dict[Any, list[Tensor | None]] = {}
    for output, cotangent in zip(outputs, cotangents, strict=True):
        if output.grad_fn is not None:
            _give(waiting, output.grad_fn, output.output_nr, cotangent)
    missing = _dependencies(list(waiting))
    ready = [node for node in waiting if missing[node] == 0]
    while ready:
        node = ready.pop()
        given = waiting.pop(node, [])
        if hasattr(node, "variable"):
            continue
        for (following, number), gradient in zip(node.next_functions, _applied(node, given), strict=True):
            if following is None:
                continue
            if gradient is not None:
                arrived(node, following, number, gradient)
                _give(waiting, following, number, gradient)
            missing[following] -= 1
            if missing[following] == 0:
                ready.append(following)


def _dependencies(roots: list[Any]) -> dict[Any, int]:
    """How many edges lead to each node."""
    found, todo = dict.fromkeys(roots, 0), list(roots)
    while todo:
        for following, _ in todo.pop().next_functions:
            if following is not None:
                if following not in found:
                    found[following] = 0
                    todo.append(following)
                found[following] += 1
    return found


def _give(waiting: dict[Any, list[Tensor | None]], node: Any, number: int, gradient: Tensor) -> None:
    metadata = node._input_metadata
    if gradient.shape != metadata[number].shape:
        gradient = gradient.sum_to_size(metadata[number].shape)
    gradient = gradient.to(metadata[number].dtype)
    slots = waiting.setdefault(node, [None] * len(metadata))
    there = slots[number]
    slots[number] = gradient if there is None else there + gradient


def _applied(node: Any, given: list[Tensor | None]) -> list[Tensor | None]:
    """What the node returns, one for each edge; all None if nothing reached it."""
    if all(gradient is None for gradient in given):
        return [None] * len(node.next_functions)
    arguments = [
        torch.zeros(m.shape, dtype=m.dtype, device=m.device) if gradient is None else gradient
        for gradient, m in zip(given, node._input_metadata, strict=True)
    ]
    # A node made in C++ is callable; one of torch.autograd.Function has the method that the engine calls.
    results = node(*arguments) if callable(node) else node.apply(*arguments)
    results = [results] if results is None or isinstance(results, Tensor) else list(results)
    edges = len(node.next_functions)
    if len(results) != edges:  # a Python node returns None for each argument that is no tensor
        results = [result for result in results if result is not None]
    if len(results) != edges:
        raise Unfollowed(f"{node.name()} returns gradients that cannot be told apart")
    return results
