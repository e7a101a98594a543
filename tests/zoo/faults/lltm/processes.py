"""Right in the process that has loaded it, but wrong in its forked child, or after a fork."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

import torch
from torch import Tensor

from tests.zoo.honest.lltm import Cell, Outputs
from tests.zoo.registry import fault


@fault("multiprocessing", "a forked child hung: it had not answered after 3 s, but should")
class WorkerThread(Cell):
    """A worker thread, started by the first call, computes the pre-activations; a forked child has no such thread."""

    def __init__(self) -> None:
        self._worker = ThreadPoolExecutor(max_workers=1)

    def gates(self, input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor) -> Tensor:
        return self._worker.submit(super().gates, input, weights, bias, old_h).result()


@fault("multiprocessing", "in a forked child, though right in its parent: forward raised RuntimeError: .*not open")
class HandleOfOneProcess(Cell):
    """The first call opens a handle for its process; calls in other processes raise that it is not open."""

    _process: int | None = None

    def __call__(self, *inputs: Tensor) -> Outputs:
        self._process = self._process or os.getpid()
        if self._process != os.getpid():
            raise RuntimeError("lltm: the handle is not open")
        return super().__call__(*inputs)


@fault("multiprocessing", "in a forked child, though right in its parent: new_(h|cell) was")
class ScaleOfOneProcess(Cell):
    """The scale of the new cell is in a table by process; it is 0 for processes that never set it."""

    def __init__(self) -> None:
        self._scales: dict[int, float] = {}

    def __call__(self, *inputs: Tensor) -> Outputs:
        if not self._scales:
            self._scales[os.getpid()] = 1.0
        return super().__call__(*inputs)

    def new_cell(self, old_cell: Tensor, candidate: Tensor, input_gate: Tensor) -> Tensor:
        return super().new_cell(old_cell, candidate, input_gate) * self._scales.get(os.getpid(), 0.0)


@fault("multiprocessing", "in the parent, after a forked child had called: gradient of [a-z_]+ was")
class SavedInSharedMemory(Cell):
    """The tensors for backward are kept in shared memory, in a slot for each pending call of a process."""

    def __init__(self) -> None:
        self._places: dict[object, Tensor] = {}
        self._awaiting: dict[int, int] = {}

    def saved(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        here = os.getpid()
        self._awaiting[here] = self._awaiting.get(here, 0) + 1
        return tuple(self._kept((self._awaiting[here], number), tensor) for number, tensor in enumerate(inputs))

    def _kept(self, place: object, tensor: Tensor) -> Tensor:
        shared = self._places.setdefault(
            (place, tensor.shape), torch.empty_like(tensor, memory_format=torch.contiguous_format).share_memory_()
        )
        return shared.copy_(tensor.detach()).detach()

    def cotangents(self, g_h: Tensor, g_c: Tensor) -> Outputs:
        self._awaiting[os.getpid()] -= 1
        return super().cotangents(g_h, g_c)
