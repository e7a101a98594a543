"""How many workers of pytest-xdist share a machine: the meaning of `-n auto` here."""

from __future__ import annotations

import os

import torch

#: Bytes of host memory, and of GPU memory, for one worker. On the host it holds oracles and the results compared with
#: them; on a GPU also its context, libraries, workspaces and captured graphs.
HOST_BYTES, GPU_BYTES = 4 * 2**30, 8 * 2**30


def count(cores: int, host_bytes: int, gpu_bytes: int | None) -> int:
    """One worker for each core, limited by memory; at least one.

    `gpu_bytes` is the memory of all GPUs, None where no GPU is used.

    >>> count(16, 128 * 2**30, None)
    16
    >>> count(16, 32 * 2**30, None)
    8
    >>> count(16, 128 * 2**30, 24 * 2**30)
    3
    """
    bounds = [cores, host_bytes // HOST_BYTES, *([] if gpu_bytes is None else [gpu_bytes // GPU_BYTES])]
    return max(1, min(bounds))


def at_work() -> int:
    """How many workers this run has; 1 outside of a worker."""
    return int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))


def compile_alone() -> None:
    """In one of several workers, let torch.compile compile in the worker itself, unless the environment says otherwise.

    It starts as many processes as there are cores, and would do so in each worker. Call it before torch.compile.
    """
    if at_work() > 1:
        os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")


def of_this_machine(on_gpus: bool) -> int:
    """`count` for the cores and the memory that this process may use."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    host_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if not on_gpus or not torch.cuda.is_available():
        return count(cores, host_bytes, None)
    devices = range(torch.cuda.device_count())
    return count(cores, host_bytes, sum(torch.cuda.get_device_properties(d).total_memory for d in devices))
