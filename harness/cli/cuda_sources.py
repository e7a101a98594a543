"""The CUDA sources of every backend, compiled for given architectures by either compiler; nothing is kept."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from backends.base import CompiledOperator
from harness import discovery


def compile_all(
    compile: Callable[[CompiledOperator, Sequence[str]], list[str]], architectures: Sequence[str], jobs: int = 1
) -> int:
    """Print a line for each source and architecture; `jobs` sources are compiled at a time.

    Raises Broken with the compiler's log.
    """
    parts = _by_source()
    with ThreadPoolExecutor(jobs) as pool:  # each thread waits for its own compiler
        for (name, _), lines in zip(parts, pool.map(lambda part: compile(part[1], architectures), parts), strict=True):
            for line in lines:
                print(f"{name}: {line}", flush=True)
    return 0


def _by_source() -> list[tuple[str, CompiledOperator]]:
    """Each source as an operator with that source alone, and its backend; once where several operators share it."""
    found: dict[Hashable, tuple[str, CompiledOperator]] = {}
    for name, backend in discovery.all_backends().items():
        for operator in discovery.operators():
            implementation = backend.implementation(operator)
            if not isinstance(implementation, CompiledOperator):
                continue
            for source in (source for source in implementation.sources if source.suffix == ".cu"):
                key = (implementation.namespace, source, implementation.include_dirs, implementation.flags)
                found.setdefault(key, (name, replace(implementation, sources=(source,))))
    return list(found.values())
