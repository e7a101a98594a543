"""Blocks of calls for a clock that stands outside: no clock is read here.

The judge sends values once. Before each block it has a *ring* of inputs and cotangents rewritten (`refresh`), each
entry with values that were in other places before. The request that is timed (`time`) says which entries go together,
so a call's arguments are not known before the clock runs. Every result of a block is kept. `commit` returns a digest of
each one; `reveal` returns the results of calls that the judge chose after that.

A block waits for all streams of every device of this process, makes its calls one after the other, and waits again. So
its seconds are those of all work that the calls began, on any stream and in any thread, and a call's part of them is a
throughput: where the GPU waits for the host, it is the time of the host to launch a call; elsewhere it is the GPU's
time, as by the clock `graph`, whose calls need no launch.

What this file uses of torch and of Python is bound here, before a candidate is imported, to functions in C where there
are such. Names that a candidate replaces later are not looked up.

Runs beside foreign code, and beside the implementations that are timed together with it. Imports torch alone.
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
#: An integer type of each size in bytes, and the type of a sum.
_BITS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
_SUM = torch.int64

_COLLECTS, _COLLECT, _COLLECT_NOT = gc.isenabled, gc.enable, gc.disable
_WITHOUT_MODES = torch.utils._python_dispatch._disable_current_modes
_WITHOUT_FUNCTIONS = torch._C.DisableTorchFunction
_RUN_BACKWARD = torch.autograd.Variable._execution_engine.run_backward
_RECORD_GRADIENTS = torch._C._set_grad_enabled
_THREADS, _DEVICE, _ZEROS = torch.set_num_threads, torch.device, torch.zeros
_TO, _DETACH, _CLONE, _CONTIGUOUS = Tensor.to, Tensor.detach, Tensor.clone, Tensor.contiguous
_VIEW, _ROLL, _COPY, _UNBIND = Tensor.view, Tensor.roll, Tensor.copy_, Tensor.unbind
_TOTAL, _LIST, _REQUIRE = Tensor.sum, Tensor.tolist, Tensor.requires_grad_
# A build of torch without CUDA has none of these.
_DEVICES, _IS_USED, _EXCHANGE, _SYNCHRONIZE = (
    getattr(torch._C, f"_cuda_{name}", None)
    for name in ("getDeviceCount", "hasPrimaryContext", "exchangeDevice", "synchronize")
)


class Timing:
    """A ring of inputs, and blocks of calls over it. Without a function, a block makes no call."""

    def __init__(self) -> None:
        self._device = _DEVICE("cpu")
        self._phase, self._arguments, self._named = FORWARD, list[Any](), dict[str, Any]()
        self._inputs = 0
        #: The positions of the inputs that have a gradient.
        self._asked: list[int] = []
        #: For each position: all values as they were sent; and the entries that calls are made with.
        self._sent: list[Tensor] = []
        self.entries: list[list[Tensor]] = []
        #: For `backward`: the leaves that have a gradient and the outputs of a forward, for each call.
        self._graphs: list[tuple[list[Tensor], list[Tensor]]] = []
        self._results: list[list[Any]] = []
        self._copies: list[list[Any]] = []

    def answer(self, function: Callable[..., Any] | None, asked: Header, tensors: Tensors) -> tuple[Header, Tensors]:
        """The reply to one request. No work is left on a device then."""
        reply: tuple[Header, Tensors] = {}, {}
        match asked["do"]:
            case "ring":
                self._take(asked, tensors)
            case "refresh":
                self._refresh(function, asked["shifts"], asked["graphs"])
            case "time":
                # It ends by waiting.
                self._block(function, _LIST(tensors["orders"]), asked["copied"], asked["late"])
                return reply
            case "commit":
                digests = [[digest(y) for y in results] for results in (*self._results, *self._copies)]
                reply = {"digests": digests}, {}
            case "reveal":
                found = {f"{call} {k}": y for call in asked["calls"] for k, y in enumerate(self._results[call])}
                reply = {}, {name: _copied(y, to="cpu") for name, y in found.items() if y is not None}
        self._wait()
        return reply

    def _take(self, asked: Header, tensors: Tensors) -> None:
        """Keep a ring: `sent` are tensors whose first dimension is the entry; the first `inputs` of them are inputs.

        Those that `asked` names have a gradient. The ring has each entry so many times as `copies` says.
        """
        self._device = _DEVICE(asked["device"])
        # A process that gets no values has used its device too, and waits for it as the others do.
        _ZEROS(1, device=self._device)
        _THREADS(asked["threads"])
        self._phase, self._arguments, self._inputs = asked["phase"], asked["arguments"], asked["inputs"]
        self._asked, self._named = asked["asked"], asked["named"]
        self._results, self._copies, self._graphs, self._sent, self.entries = [], [], [], [], []
        self._sent = [_TO(tensors[str(place)], self._device, copy=True) for place in range(len(tensors))]
        self.entries = [
            [
                _REQUIRE(_CLONE(entry), place in self._asked and self._phase != FORWARD)
                for _ in range(asked["copies"])
                for entry in _UNBIND(sent)
            ]
            for place, sent in enumerate(self._sent)
        ]

    def _refresh(self, function: Callable[..., Any] | None, shifts: list[list[int]], graphs: list[list[int]]) -> None:
        """Rewrite every entry in place. `graphs` are the inputs of each forward that the next block differentiates."""
        self._results, self._copies, self._graphs = [], [], []
        _RECORD_GRADIENTS(False)
        for sent, entries, moved in zip(self._sent, self.entries, shifts, strict=True):
            values = (y for shift in moved for y in _UNBIND(_VIEW(_ROLL(_VIEW(sent, -1), shift), sent.shape)))
            for entry, new in zip(entries, values, strict=True):
                _COPY(entry, new)
        _RECORD_GRADIENTS(True)
        if function is not None:
            for places in zip(*graphs, strict=True):
                leaves = self._leaves(places)
                self._graphs.append((self._with_gradients(leaves), _tensors(self._result(function, leaves))))

    def _block(
        self, function: Callable[..., Any] | None, orders: list[list[int]], copied: list[int], late: list[int]
    ) -> None:
        """One call for each column of `orders`, the entries of each position; the results of some are copied at once.

        `late` are values, as they were sent, that the arguments of the first of `copied` get only just before it. For
        `backward`, `orders` and `late` are those of the cotangents alone.
        """
        collected, results, copies = _COLLECTS(), self._results, self._copies
        _COLLECT_NOT()
        try:
            self._wait()
            for number, places in enumerate(zip(*orders, strict=True)):
                if function is not None:
                    if late and number == copied[0]:
                        self._write(places, late)
                    results.append(self._called(function, number, places))
                    if number in copied:
                        copies.append([y if y is None else _copied(y) for y in results[-1]])
            self._wait()
        finally:
            _RECORD_GRADIENTS(True)
            if collected:
                _COLLECT()

    def _write(self, places: Sequence[int], late: list[int]) -> None:
        _RECORD_GRADIENTS(False)
        first = self._inputs if self._phase == BACKWARD else 0
        for position, (entry, source) in enumerate(zip(places, late, strict=True), first):
            _COPY(self.entries[position][entry], self._sent[position][source])

    def _called(self, function: Callable[..., Any], number: int, places: Sequence[int]) -> list[Any]:
        _RECORD_GRADIENTS(self._phase != FORWARD)
        if self._phase == BACKWARD:
            leaves, outputs = self._graphs[number]
            return _plain(_gradients(outputs, leaves, self._cotangents(places), keep_graph=True))
        leaves = self._leaves(places)
        outputs = _tensors(self._result(function, leaves))
        if self._phase == FORWARD:
            return _plain(outputs)
        cotangents = self._cotangents(places[self._inputs :])
        gradients = _gradients(outputs, self._with_gradients(leaves), cotangents, keep_graph=False)
        return _plain([*outputs, *gradients])

    def _leaves(self, places: Sequence[int]) -> list[Tensor]:
        return [self.entries[place][entry] for place, entry in enumerate(places[: self._inputs])]

    def _with_gradients(self, leaves: list[Tensor]) -> list[Tensor]:
        return [leaves[place] for place in self._asked]

    def _cotangents(self, places: Sequence[int]) -> list[Tensor]:
        return [self.entries[self._inputs + k][entry] for k, entry in enumerate(places)]

    def _result(self, function: Callable[..., Any], leaves: list[Tensor]) -> Any:
        """What a call returns. Of an argument, an integer stands for a leaf, a list of one value for that value."""
        given = [leaves[about] if isinstance(about, int) else about[0] for about in self._arguments]
        named = {name: leaves[about] if isinstance(about, int) else about[0] for name, about in self._named.items()}
        return function(*given, **named)

    def _wait(self) -> None:
        if self._device.type == "cuda":
            synchronize()


def synchronize() -> None:
    """Wait for all streams of every CUDA device that this process has used."""
    assert _DEVICES is not None
    assert _IS_USED is not None
    assert _EXCHANGE is not None
    assert _SYNCHRONIZE is not None
    for device in range(_DEVICES()):
        if _IS_USED(device):
            before = _EXCHANGE(device)
            _SYNCHRONIZE()
            _EXCHANGE(before)


def digest(result: Tensor | None) -> int | None:
    """The sum of the bits of all elements, read as integers: another result has another one."""
    if result is None:
        return None
    with _WITHOUT_FUNCTIONS(), _WITHOUT_MODES():
        bits = _VIEW(_CONTIGUOUS(_DETACH(result)), _BITS[result.element_size()])
        return int(_TOTAL(bits, dtype=_SUM))


def _copied(tensor: Tensor, to: str = "") -> Tensor:
    """What is in the tensor's memory: replaced methods and modes left on have no part in it."""
    with _WITHOUT_FUNCTIONS(), _WITHOUT_MODES():
        own = _CONTIGUOUS(_DETACH(tensor))
        return _TO(own, to or own.device, copy=True)


def _gradients(outputs: list[Tensor], leaves: list[Tensor], cotangents: list[Tensor], keep_graph: bool) -> Any:
    """What `torch.autograd.grad`, which a candidate can replace, would return.

    Integers and truth values, which have no cotangent, are left out.
    """
    if len(outputs) > len(cotangents):
        outputs = [y for y in outputs if y.dtype.is_floating_point]
    create_graph, allow_unused, accumulate = False, False, False
    given = tuple(outputs), tuple(cotangents), keep_graph, create_graph, tuple(leaves), allow_unused
    return _RUN_BACKWARD(*given, accumulate_grad=accumulate)


def _tensors(results: Any) -> list[Tensor]:
    return [results] if isinstance(results, Tensor) else list(results)


def _plain(results: Any) -> list[Any]:
    """The results as a list. Raises TypeError for another class of tensor, which may compute when it is read."""
    found = _tensors(results)
    for y in found:
        if type(y) is not Tensor:
            raise TypeError(f"a result was a {type(y).__name__}, but should be a torch.Tensor")
    return found
