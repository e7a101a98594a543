"""The CUDA sources of every backend, compiled for given architectures by either compiler; nothing is kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from backends.base import CompiledOperator
from harness import discovery


def compile_all(compile: Callable[[CompiledOperator, Sequence[str]], list[str]], architectures: Sequence[str]) -> int:
    """Print a line for each source and architecture. Raises Broken with the compiler's log."""
    for name, found in discovery.all_backends().items():
        for operator in discovery.operators():
            implementation = found.implementation(operator)
            if isinstance(implementation, CompiledOperator) and implementation.has_cuda_sources:
                for line in compile(implementation, architectures):
                    print(f"{name}: {line}", flush=True)
    return 0
