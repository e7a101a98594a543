"""The ceilings of this machine, measured in the same run: copies of several lengths, and a matrix product."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import torch

from .clocks import CUDA, GRAPH, WALL, calls_for, clock
from .work import Work

#: Bytes that a copy reads and writes: from the size of a first-level cache to more than any cache holds.
COPIES = tuple(2**power for power in range(16, 29, 2))
#: Rows and columns of the matrices of the product, by device: large enough to fill it.
_PRODUCT = {"cpu": 1024, CUDA: 8192}
_SAMPLES = 5
_BLOCK_SECONDS = 0.005


def measure(device: str, dtype: torch.dtype) -> dict[str, Any]:
    """`flops_per_second` of a product, and `copies`: (bytes, bytes_per_second) pairs, with the present thread count."""
    name = GRAPH if device == CUDA else WALL
    copies = []
    for size in COPIES:
        source = torch.zeros(size // 2 // dtype.itemsize, dtype=dtype, device=device)
        target = torch.empty_like(source)
        copies.append([size, size / _seconds(Work([partial(target.copy_, source)], device), name)])
    n = _PRODUCT[device]
    a, b = (torch.randn(n, n, device=device).to(dtype) for _ in range(2))
    out = torch.empty_like(a)
    product = Work([partial(torch.mm, a, b, out=out)], device)
    return {"flops_per_second": 2 * n**3 / _seconds(product, name), "copies": copies}


def _seconds(work: Work, name: str) -> float:
    """Seconds of one call, the best of several blocks: a ceiling is the best that the machine can do."""
    timed = clock(name)
    calls = calls_for(_BLOCK_SECONDS, timed, work)
    return min(timed(work, calls) / calls for _ in range(_SAMPLES))


def roofline(copies: Sequence[Sequence[float]], flops_per_second: float, bytes: int, flops: int) -> tuple[float, str]:
    """(seconds, bound): the least time at those ceilings, and which of them sets it, `memory` or `products`.

    The bandwidth is the best of all copies of at least `bytes` bytes, so that a cache's bandwidth does not count for
    data that it cannot hold.
    """
    longer = [rate for size, rate in copies if size >= bytes] or [copies[-1][1]]
    by_memory, by_products = bytes / max(longer), flops / flops_per_second
    return (by_memory, "memory") if by_memory >= by_products else (by_products, "products")


def floor(ceilings: Sequence[dict[str, Any]], bytes: int, flops: int) -> float:
    """Seconds that no call can beat: `roofline`, at the best of several ceilings.

    What a copy of a quarter of the bytes reaches counts too, because a part of the data may be in a nearer cache.
    """
    rates = [rate for ceiling in ceilings for size, rate in ceiling["copies"] if 4 * size >= bytes]
    rates += [ceiling["copies"][-1][1] for ceiling in ceilings]
    return max(bytes / float(max(rates)), flops / float(max(ceiling["flops_per_second"] for ceiling in ceilings)))
