"""The seconds of a number of calls, by wall clock and by the GPU's clock.

`wall` is the time that a user sees: eager calls, each until its result is there. `graph` is the GPU's own time: the
same calls in a CUDA graph, timed by CUDA events, without the host. On CUDA both begin with an L2 cache without the
inputs: it is overwritten outside the timed region. A graph with more calls than the ring has inputs finds some in it.

`throughput` is for what is timed beside a candidate on CUDA, whose calls another process times so: eager calls that
follow each other, of which none is waited for but the last. Nothing is overwritten.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from math import ceil

import torch

from .work import Work

WALL, GRAPH = CLOCKS = ("wall", "graph")
THROUGHPUT = "throughput"
CUDA = "cuda"

Clock = Callable[[Work, int], float]

#: Calls before timing begins, to warm up allocators, thread pools, autotuners and caches of kernels.
_WARM_UP = 3


class NotCapturable(Exception):
    """The work cannot be captured in a CUDA graph; the message says why."""


def clock(name: str) -> Clock:
    """The clock of that name. Raises ValueError for an unknown one."""
    clocks = {WALL: wall, GRAPH: graph, THROUGHPUT: throughput}
    if name not in clocks:
        raise ValueError(f"clock was {name!r}, but should be one of {', '.join(clocks)}")
    return clocks[name]


def wall(work: Work, calls: int) -> float:
    """Seconds of `calls` eager calls, one after the other; on CUDA each with an empty queue and a flushed L2 cache."""
    if work.device != CUDA:
        return throughput(work, calls)
    seconds = 0.0
    with _no_collection():
        for _ in range(calls):
            flush_l2()
            torch.cuda.synchronize()
            start = time.perf_counter()
            work.once()
            torch.cuda.synchronize()
            seconds += time.perf_counter() - start
    return seconds


def throughput(work: Work, calls: int) -> float:
    """Seconds of `calls` eager calls, one after the other, until the last one's result is there."""
    wait = torch.cuda.synchronize if work.device == CUDA else _nothing
    with _no_collection():
        wait()
        start = time.perf_counter()
        for _ in range(calls):
            work.once()
        wait()
        return time.perf_counter() - start


def _nothing() -> None:
    pass


def graph(work: Work, calls: int) -> float:
    """Seconds by the GPU's clock of `calls` calls in one CUDA graph. Raises NotCapturable."""
    if calls not in work.graphs:
        work.graphs[calls] = _captured(work, calls)
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
    flush_l2()
    torch.cuda.synchronize()
    begin.record()
    work.graphs[calls].replay()
    end.record()
    torch.cuda.synchronize()
    milliseconds: float = begin.elapsed_time(end)
    return milliseconds / 1e3


def _captured(work: Work, calls: int) -> torch.cuda.CUDAGraph:
    if work.device != CUDA:
        raise NotCapturable(f"CUDA graphs exist on the device cuda only, and this is {work.device}")
    made = torch.cuda.CUDAGraph()
    try:
        # The autograd engine runs a backward on the stream of its forward: that of `preparing`.
        with torch.cuda.stream(capture_stream()):
            for _ in range(_WARM_UP):
                work.once()
            torch.cuda.synchronize()
            with torch.cuda.graph(made, stream=capture_stream()):
                for _ in range(calls):
                    work.once()
    except RuntimeError as error:
        raise NotCapturable(f"capture in a CUDA graph raised {type(error).__name__}: {error}") from error
    made.replay()
    torch.cuda.synchronize()
    return made


@cache
def capture_stream() -> torch.cuda.Stream:
    """The stream on which graphs are captured."""
    return torch.cuda.Stream()  # type: ignore[no-untyped-call]


@contextmanager
def preparing(name: str, device: str) -> Iterator[None]:
    """The context in which work for that clock must be prepared: for graphs, the stream that will capture them."""
    if name != GRAPH or device != CUDA:
        yield
        return
    with torch.cuda.stream(capture_stream()):
        yield
    torch.cuda.synchronize()


@cache
def _twice_l2() -> torch.Tensor:
    size = torch.cuda.get_device_properties(torch.cuda.current_device()).L2_cache_size
    return torch.empty(2 * size, dtype=torch.int8, device=CUDA)


def flush_l2() -> None:
    """Overwrite the GPU's L2 cache."""
    _twice_l2().zero_()


@contextmanager
def _no_collection() -> Iterator[None]:
    """Turn the garbage collector off in a timed region."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def calls_for(seconds: float, timed: Clock, work: Work, multiple: int = 1) -> int:
    """How many calls take about that many seconds, a multiple of `multiple`; warms the work up."""
    for _ in range(_WARM_UP):
        work.once()
    calls = multiple
    while (took := timed(work, calls)) < seconds / 4 and calls < 2**20 * multiple:
        calls *= 2
    return max(1, ceil(seconds / took * calls / multiple)) * multiple
