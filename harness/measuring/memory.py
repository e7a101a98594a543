"""The peak memory of a call beyond its arguments: an exact count of bytes, the same each time."""

from __future__ import annotations

import gc

import torch
from torch.profiler import ProfilerActivity, profile

from .clocks import CUDA
from .work import Work

#: Calls of which the largest peak counts, on CUDA. What was left over before a call and is freed in it makes its peak
#: too small, never too large: in two records a backend had a tenth of the bytes of its own results.
_CALLS = 3


def peak_bytes(work: Work) -> int:
    """The largest number of bytes that one call had allocated at a time, its results included."""
    work.once()  # one-time allocations do not count
    if work.device == CUDA:
        gc.collect()
        return max(_peak_of_next(work) for _ in range(_CALLS))
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as seen:
        work.once()
    result = seen.profiler.kineto_results
    held = peak = 0
    for event in sorted((e for e in result.events() if e.name() == "[memory]"), key=lambda e: e.start_ns()):
        held += event.nbytes()
        peak = max(peak, held)
    return peak


def _peak_of_next(work: Work) -> int:
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    work.once()
    torch.cuda.synchronize()
    return int(torch.cuda.max_memory_allocated() - before)
