"""What the kernels of a CUDA source take of a multiprocessor, as ptxas reports it under `--resource-usage`."""

from __future__ import annotations

import re
from dataclasses import dataclass

_ENTRY = re.compile(r"Compiling entry function '(\w+)'")
_SPILLS = re.compile(r"(\d+) bytes spill stores, (\d+) bytes spill loads")
_REGISTERS = re.compile(r"Used (\d+) registers")
_SHARED = re.compile(r"(\d+) bytes smem")


@dataclass(frozen=True)
class Usage:
    """What all kernels of a log need at most, for each thread or block of one of them.

    `spilled` is in bytes that a thread stores because it has no register left, `shared` in bytes that a kernel declares
    for a block; what a launch asks for beside them is decided by the host.
    """

    kernels: int
    registers: int
    spilled: int
    spilling: int
    shared: int

    def in_words(self) -> str:
        """`12 kernels, at most 64 registers, no spills, at most 4,096 bytes of shared memory declared`."""
        spills = f"{self.spilling} spill, at most {self.spilled:,} bytes" if self.spilling else "no spills"
        return (
            f"{self.kernels} kernels, at most {self.registers} registers, {spills}, "
            f"at most {self.shared:,} bytes of shared memory declared"
        )


def usage_of(log: str) -> Usage:
    """What a log of nvcc says. The lines about a function that is no kernel are not counted."""
    registers, spilled, shared = [0], [0], [0]
    parts = _ENTRY.split(log)
    for text in parts[2::2]:
        # ptxas prints the properties of the kernel first, and then those of the functions that it calls.
        if found := _SPILLS.search(text):
            spilled.append(int(found[1]))
        if found := _REGISTERS.search(text):
            registers.append(int(found[1]))
        if found := _SHARED.search(text):
            shared.append(int(found[1]))
    return Usage(
        kernels=len(parts) // 2,
        registers=max(registers),
        spilled=max(spilled),
        spilling=sum(bytes > 0 for bytes in spilled),
        shared=max(shared),
    )
