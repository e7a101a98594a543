"""Blocks of calls for a clock that stands outside: no clock is read here.

The judge sends a *ring* of inputs and cotangents once. Before each block it has them rewritten (`refresh`), each with
values that the ring had in other places. The request that is timed (`time`) says which entries go together, so a call's
arguments are not known before the clock runs. Every result of a block is kept. `commit` returns a digest of each one;
`reveal` returns the results of calls that the judge chose after that.

Runs beside foreign code, and in the judge for the implementations that are timed in it. Imports torch alone.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

FORWARD, BACKWARD = "forward", "backward"

Header = dict[str, Any]
Tensors = dict[str, Tensor]
#: An integer type of each size in bytes.
_BITS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
# A candidate may replace this function; it is taken before one is imported.
_synchronize = torch.cuda.synchronize


class Timing:
    """A ring of inputs, and blocks of calls over it. Without a function, a block makes no call."""

    def __init__(self) -> None:
        self._device = torch.device("cpu")
        self._phase, self._arguments = FORWARD, list[Any]()
        self._inputs = 0
        #: For each position: all values as they were sent; and the entries that calls are made with.
        self._sent: list[Tensor] = []
        self.entries: list[list[Tensor]] = []
        #: For `backward`: the leaves and the outputs of a forward, for each call.
        self._graphs: list[tuple[list[Tensor], list[Tensor]]] = []
        self._results: list[list[Any]] = []
        self._copies: list[list[Any]] = []

    def answer(self, function: Callable[..., Any] | None, asked: Header, tensors: Tensors) -> tuple[Header, Tensors]:
        """The reply to one request."""
        match asked["do"]:
            case "ring":
                self._take(asked, tensors)
            case "refresh":
                self._refresh(function, asked["shifts"], asked["graphs"])
            case "time":
                self._block(function, asked["orders"], set(asked["copied"]))
            case "commit":
                digests = [[digest(y) for y in results] for results in (*self._results, *self._copies)]
                return {"digests": digests}, {}
            case "reveal":
                found = {f"{call} {k}": y for call in asked["calls"] for k, y in enumerate(self._results[call])}
                return {}, {name: y.detach().cpu().contiguous().clone() for name, y in found.items() if y is not None}
        return {}, {}

    def _take(self, asked: Header, tensors: Tensors) -> None:
        """Keep a ring: `sent` are tensors whose first dimension is the entry; the first `inputs` of them are inputs."""
        self._device = torch.device(asked["device"])
        torch.set_num_threads(asked["threads"])
        self._phase, self._arguments, self._inputs = asked["phase"], asked["arguments"], asked["inputs"]
        self._results, self._copies, self._graphs = [], [], []
        self._sent = [tensors[str(place)].to(self._device, copy=True) for place in range(len(tensors))]
        self.entries = [
            [entry.clone().requires_grad_(place < self._inputs and self._phase != FORWARD) for entry in sent]
            for place, sent in enumerate(self._sent)
        ]

    def _refresh(self, function: Callable[..., Any] | None, shifts: list[int], graphs: list[list[int]]) -> None:
        """Rewrite every entry in place. `graphs` are the inputs of each forward that the next block differentiates."""
        self._results, self._copies, self._graphs = [], [], []
        with torch.no_grad():
            for sent, entries, shift in zip(self._sent, self.entries, shifts, strict=True):
                rolled = sent.view(-1).roll(shift).view(sent.shape)
                for entry, values in zip(entries, rolled, strict=True):
                    entry.copy_(values)
        if function is not None:
            for places in zip(*graphs, strict=True):
                leaves = self._leaves(places)
                self._graphs.append((leaves, _tensors(function(*self._called_with(leaves)))))
        self._wait()

    def _block(self, function: Callable[..., Any] | None, orders: list[list[int]], copied: set[int]) -> None:
        """One call for each column of `orders`, the entries of each position; the results of some are copied at once.

        For `backward`, `orders` are those of the cotangents alone.
        """
        collected, results, copies = gc.isenabled(), self._results, self._copies
        gc.disable()
        try:
            for number, places in enumerate(zip(*orders, strict=True)):
                if function is not None:
                    results.append(self._called(function, number, places))
                    if number in copied:
                        copies.append([y if y is None else y.detach().clone() for y in results[-1]])
                if self._device.type == "cuda":
                    _synchronize()
        finally:
            if collected:
                gc.enable()

    def _called(self, function: Callable[..., Any], number: int, places: Sequence[int]) -> list[Any]:
        if self._phase == BACKWARD:
            leaves, outputs = self._graphs[number]
            cotangents = self._cotangents(places)
            return _plain(torch.autograd.grad(outputs, leaves, cotangents, retain_graph=True))
        leaves = self._leaves(places)
        if self._phase == FORWARD:
            with torch.no_grad():
                return _plain(function(*self._called_with(leaves)))
        outputs = _tensors(function(*self._called_with(leaves)))
        gradients = torch.autograd.grad(outputs, leaves, self._cotangents(places[self._inputs :]))
        return _plain([*outputs, *gradients])

    def _leaves(self, places: Sequence[int]) -> list[Tensor]:
        return [self.entries[place][entry] for place, entry in enumerate(places[: self._inputs])]

    def _cotangents(self, places: Sequence[int]) -> list[Tensor]:
        return [self.entries[self._inputs + k][entry] for k, entry in enumerate(places)]

    def _called_with(self, leaves: list[Tensor]) -> list[Any]:
        """The arguments of the call: an integer stands for a leaf, a list of one value for that value."""
        return [leaves[about] if isinstance(about, int) else about[0] for about in self._arguments]

    def _wait(self) -> None:
        if self._device.type == "cuda":
            _synchronize()


def digest(result: Tensor | None) -> int | None:
    """The sum of the bits of all elements, read as integers: another result has another one."""
    if result is None:
        return None
    bits = result.detach().contiguous().view(_BITS[result.element_size()])
    return int(bits.sum(dtype=torch.int64))


def _tensors(results: Any) -> list[Tensor]:
    return [results] if isinstance(results, Tensor) else list(results)


def _plain(results: Any) -> list[Any]:
    """The results as a list. Raises TypeError for another class of tensor, which may compute when it is read."""
    found = _tensors(results)
    for y in found:
        if type(y) is not Tensor:
            raise TypeError(f"a result was a {type(y).__name__}, but should be a torch.Tensor")
    return found
