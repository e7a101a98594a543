"""Time blocks of calls whose inputs are rewritten before each block, by the clock of this process.

Implementations that are timed beside a candidate are timed like it: each is in a process of its own, where the same
code of `harness.executing.timing` makes the calls of the same requests. So the ratio is one of implementations.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import ceil
from typing import Any

import torch
from torch import Tensor

from backends.base import CUDA
from harness.errors import Unavailable
from harness.executing.timing import BACKWARD, FORWARD, Header, Tensors, Timing
from harness.judging.scenario import Call, Scenario, realise
from spec.contract import FORWARD_AND_BACKWARD, Case, Operator

#: The most entries that are sent for a ring, and the most bytes of all of them.
_LENGTH, _BYTES = 256, {"cpu": 2**25, CUDA: 2**28}
#: On a GPU a ring has these entries several times. The most calls of a block, which uses no entry twice; the most bytes
#: of the ring and of what its calls return and save; and the part of the GPU's memory that all processes may take.
_CALLS, _KEPT, _SHARE = 1024, 2**33, 1 / 3
#: Calls of a block, if the ring has as many inputs: a result that a later call overwrites shows in no fewer.
_FEWEST = 2
#: A block is so many times as long as one without calls, if the ring is long enough: what is subtracted is below 1%.
_LONGER = 100
#: Blocks without calls that are timed for that, and the most blocks of one sample.
_EMPTY, _BLOCKS = 9, 8
#: Blocks of which the quickest says how many calls a sample needs, if each takes less than so many seconds: another
#: program may hold up one of them.
_QUICKEST_OF, _SHORT = 5, 0.1
#: A time that is not positive, because the block was as fast as one without calls, counts as this many seconds.
LEAST = 1e-9

#: Answers a request as `Timing.answer` does.
Ask = Callable[[Header, Tensors], tuple[Header, Tensors]]


@dataclass(frozen=True)
class Plan:
    """One block: how the values of each position move, which entries each call gets, which results are copied.

    The values move by another distance in each copy of the ring. `late` are the values that the arguments of the first
    call of `copied` get only just before it; empty if none does.
    """

    shifts: list[list[int]]
    orders: list[list[int]]
    copied: list[int]
    late: list[int]


class Ring:
    """Inputs and cotangents of a case, with ordinary values from a seed that nobody knows."""

    def __init__(
        self, operator: Operator, case: Case, dtype: torch.dtype, device: str, threads: int | None, processes: int = 1
    ) -> None:
        """`processes` is how many have a copy of the ring."""
        self.operator, self.case, self.device, self.threads = operator, case, device, threads
        self.draw = random.SystemRandom()
        first = self._realised(dtype)
        size = sum(tensor.numel() * tensor.itemsize for tensor in first.tensors)
        sent = max(1, min(_LENGTH, _BYTES[device] // max(size, 1)))
        calls = [first, *(self._realised(dtype) for _ in range(1, sent))]
        self.sent = [torch.stack(position) for position in zip(*(call.tensors for call in calls), strict=True)]
        memory = 0 if device != CUDA else torch.cuda.get_device_properties(0).total_memory
        # What a call reads and returns, and what it may save for a backward.
        cost = operator.cost(FORWARD_AND_BACKWARD, case.sizes, dtype.itemsize)
        #: How often a ring has each entry.
        self.copies = copies_of(sent, cost.bytes + cost.between, memory, processes)
        self.length = sent * self.copies
        #: Only a GPU can begin a call before what was asked for earlier is done.
        self.has_late = device == CUDA

    def _realised(self, dtype: torch.dtype) -> Call:
        return realise(self.operator, Scenario.of(self.case, seed=self.draw.getrandbits(48)), dtype)

    @cached_property
    def own(self) -> Ask:
        """Requests to this process, which has a copy of the ring."""
        ask = asking(None)
        self.give(ask, FORWARD)
        return ask

    @property
    def inputs(self) -> int:
        """How many positions are inputs; the others are cotangents."""
        return len(self.operator.inputs)

    def pairs(self) -> list[tuple[tuple[Tensor, ...], tuple[Tensor, ...]]]:
        """(inputs, cotangents) of each entry, as they were first drawn."""
        entries = [tuple(tensor.to(self.device) for tensor in call) for call in zip(*self.sent, strict=True)]
        return [(entry[: self.inputs], entry[self.inputs :]) for entry in entries]

    def give(self, ask: Ask, phase: str, with_values: bool = True) -> None:
        """Send the ring, or only what a block without calls needs of it."""
        arguments, named = self._arguments()
        header = {
            "do": "ring",
            "phase": phase,
            "arguments": arguments,
            "named": named,
            "inputs": self.inputs,
            "asked": [place for place, arg in enumerate(self.operator.inputs) if arg.differentiable],
            "copies": self.copies,
            "threads": self.threads or torch.get_num_threads(),
            "device": self.device,
        }
        ask(header, {str(place): tensor for place, tensor in enumerate(self.sent)} if with_values else {})

    def _arguments(self) -> tuple[list[Any], dict[str, Any]]:
        """For each argument of a call the number of the tensor, or a list of the plain value; then those by name."""
        tensors = [position[0] for position in self.sent[: self.inputs]]
        places = {id(tensor): place for place, tensor in enumerate(tensors)}
        seen: list[tuple[tuple[Any, ...], dict[str, Any]]] = []

        def probe(*arguments: Any, **named: Any) -> tuple[Tensor, ...]:
            seen.append((arguments, named))
            return self.operator.forward(*tensors)

        def about(argument: Any) -> Any:
            if isinstance(argument, Tensor) and id(argument) not in places:
                raise Unavailable(f"{self.operator.title} passes tensors of its own making, so it cannot be timed")
            return places[id(argument)] if isinstance(argument, Tensor) else [argument]

        self.operator.bound(probe)(*tensors)
        ((arguments, named),) = seen
        return [about(each) for each in arguments], {name: about(each) for name, each in named.items()}

    def plan(self, calls: int) -> Plan:
        """A block of that many calls, at most `length`."""
        shifts = [[self._shift(position) for _ in range(self.copies)] for position in self.sent]
        orders = [self.draw.sample(range(self.length), calls) for _ in self.sent]
        late = [self.draw.randrange(len(position)) for position in self.sent] if self.has_late else []
        return Plan(shifts, orders, self.draw.sample(range(calls), min(2, calls)), late)

    def _shift(self, position: Tensor) -> int:
        """By how many elements the values move. Integers move by whole entries: offsets, for example, must not fall."""
        if position.is_floating_point() or position.is_complex():
            return self.draw.randrange(max(position.numel(), 1))
        return self.draw.randrange(len(position)) * position[0].numel()

    def call(self, plan: Plan, number: int, phase: str) -> Call:
        """The inputs and cotangents of one call of a block, found without rewriting the other entries."""
        tensors = []
        late = set(range(len(self.sent))[_timed(self.inputs, phase)]) if number == plan.copied[0] else set()
        for position, (sent, shifts, order) in enumerate(zip(self.sent, plan.shifts, plan.orders, strict=True)):
            if plan.late and position in late:
                tensors.append(sent[plan.late[position]])
                continue
            size = sent[0].numel()
            copy, entry = divmod(order[number], len(sent))
            places = (torch.arange(size) + (entry * size - shifts[copy])) % max(sent.numel(), 1)
            tensors.append(sent.view(-1)[places].view(sent.shape[1:]))
        return Call(tuple(tensors[: self.inputs]), tuple(tensors[self.inputs :]))

    def refresh(self, ask: Ask, plan: Plan, phase: str) -> float:
        """Rewrite all entries, and make the forwards of a backward; the seconds that it took."""
        graphs = plan.orders[: self.inputs] if phase == BACKWARD else []
        return _seconds(ask, {"do": "refresh", "shifts": plan.shifts, "graphs": graphs})

    def block(self, ask: Ask, plan: Plan, phase: str) -> float:
        """Make the calls; the seconds that it took."""
        chosen = _timed(self.inputs, phase)
        orders = torch.tensor(plan.orders[chosen], dtype=torch.int32)
        return _seconds(ask, {"do": "time", "copied": plan.copied, "late": plan.late[chosen]}, {"orders": orders})


def copies_of(sent: int, kept: int, memory: int, processes: int) -> int:
    """How often a ring has each of the entries that are sent, if a call keeps so many bytes; 1 without a GPU's memory.

    Values of a copy are those that were sent in other places.
    """
    calls = min(_CALLS, int(min(_KEPT, memory * _SHARE / processes)) // max(kept, 1))
    return max(1, calls // sent)


def _timed(inputs: int, phase: str) -> slice:
    """The positions whose entries are chosen when the clock runs: of a backward, those of the cotangents alone."""
    return {FORWARD: slice(inputs), BACKWARD: slice(inputs, None)}.get(phase, slice(None))


def _seconds(ask: Ask, header: Header, tensors: Tensors | None = None) -> float:
    began = time.perf_counter()
    ask(header, tensors or {})
    return time.perf_counter() - began


class BlockTimer:
    """Times one phase of one implementation. `empty` answers as `ask` does, and makes no calls."""

    def __init__(self, ring: Ring, phase: str, ask: Ask, empty: Ask) -> None:
        self.ring, self.phase, self.ask, self.empty = ring, phase, ask, empty
        #: Calls of a block, and blocks of a sample.
        self.calls = self.blocks = 1

    def begin(self, seconds: float, longest: float) -> None:
        """Send the ring, and set how many calls and blocks make a sample of about so long; this warms up, too.

        A block is longer where a request takes more than 1% of that. If the ring is short, a sample has several
        blocks. Raises Unavailable if a call takes longer than `longest` seconds.
        """
        self.ring.give(self.ask, self.phase)
        self.ring.give(self.empty, self.phase, with_values=False)
        self.calls = self.blocks = 1
        self.seconds()
        if (took := self._quickest()) > longest:
            raise too_slow(took, longest)
        long = max(seconds, _LONGER * self.fixed())
        while (took := self._quickest()) * self.calls < long / 4 and self.calls < self.ring.length:
            self.calls = min(2 * self.calls, self.ring.length)
        self.calls = min(max(_FEWEST, ceil(long / took)), self.ring.length)
        self.blocks = max(1, min(ceil(seconds / (took * self.calls)), _BLOCKS))

    def _quickest(self) -> float:
        """Seconds of one call in the quickest of some blocks; in one block, if that takes long."""
        took = self.seconds()
        if took * self.calls > _SHORT:
            return took
        return min(took, *(self.seconds() for _ in range(_QUICKEST_OF - 1)))

    def fixed(self) -> float:
        """Seconds of a block without calls: the request, its reply, and waiting for the device."""
        plan = self.ring.plan(self.calls)
        return statistics.median(self._empty(plan) for _ in range(_EMPTY))

    def seconds(self) -> float:
        """Seconds of one call: those of a block less those of a block without calls, in an order that is drawn."""
        plan = self.ring.plan(self.calls)
        self.ring.refresh(self.ask, plan, self.phase)
        empty = self._empty(plan) if (first := self.ring.draw.random() < 0.5) else 0.0
        took = self.block(plan)
        return max(took - (empty if first else self._empty(plan)), LEAST) / self.calls

    def sample(self) -> float:
        """One sample of a round."""
        return sum(self.seconds() for _ in range(self.blocks)) / self.blocks

    def block(self, plan: Plan) -> float:
        """Make the calls of a block; the seconds that it took."""
        return self.ring.block(self.ask, plan, self.phase)

    def _empty(self, plan: Plan) -> float:
        return self.ring.block(self.empty, plan, self.phase)


def too_slow(took: float, longest: float) -> Unavailable:
    """The reason why something is not timed."""
    return Unavailable(f"a call took {took:.3g} s, and may take {longest:g} s: raise --longest to have it")


def asking(function: Callable[..., Any] | None) -> Ask:
    """Requests to this process. Without a function, blocks make no calls."""
    timing = Timing()
    return lambda header, tensors: timing.answer(function, header, tensors)
