"""Build every compiled backend that this machine can build: `setup.py` calls it for `nox -s wheel`."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import torch

from backends.base import CPU, CUDA, CUDA_EMULATED, CompiledOperator
from harness import discovery
from harness.building import ahead, build
from harness.errors import UnknownName

#: Stands for every compiled backend.
ALL = "all"


def collect(folder: Path, wanted: Sequence[str] = (ALL,)) -> None:
    """Put the libraries and their index into the folder; a line for each. `wanted` are `BACKEND/OPERATOR`, or ALL.

    Raises UnknownName for one that no compiled backend answers to.
    """
    compiled = list(_compiled())
    known = {f"{backend}/{operator.operator}" for backend, operator, _ in compiled}
    for name in wanted:
        if name not in (*known, ALL):
            raise UnknownName("compiled backend", name, (*known, ALL))
    chosen = [one for one in compiled if ALL in wanted or f"{one[0]}/{one[1].operator}" in wanted]
    ahead.collect(_libraries(chosen), folder)


def _libraries(compiled: Iterable[tuple[str, CompiledOperator, str]]) -> Iterator[tuple[str, str, Path]]:
    for backend, operator, device in compiled:
        began = time.monotonic()
        library = build.build(operator, device)
        print(f"built {backend} {operator.operator} for {device} in {time.monotonic() - began:.0f} s", flush=True)
        yield build.library_name(operator, device), build.made_from(operator, device), library


def _compiled() -> Iterator[tuple[str, CompiledOperator, str]]:
    for backend, found in discovery.all_backends().items():
        for name in discovery.operators():
            if name in found.backend.absent:
                continue
            implementation = found.implementation(name)
            if isinstance(implementation, CompiledOperator):
                for device in _devices(implementation, found.backend.devices):
                    yield backend, implementation, device


def _devices(operator: CompiledOperator, devices: tuple[str, ...]) -> tuple[str, ...]:
    """The devices that need their own library: without CUDA sources one library serves every device."""
    if not operator.has_cuda_sources:
        return (CPU,)
    here = (CUDA, CUDA_EMULATED) if torch.cuda.is_available() else (CUDA_EMULATED,)
    return tuple(device for device in here if device in devices)
