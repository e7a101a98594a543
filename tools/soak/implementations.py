"""All right implementations of an operator: the shipped backends, and the controls of tests/zoo."""

from __future__ import annotations

from functools import cache

import torch

from backends.base import CPU, CUDA, CUDA_EMULATED
from harness import discovery
from harness.errors import CannotBuild, Unavailable
from harness.judging.subject import Subject
from harness.properties.drawn_calls import PROPERTY
from harness.running.selection import DTYPE_NAMES, Selection, slots
from tests.zoo import registry

#: The devices on which a scenario is called, by the device that is named on the command line. They share its oracle.
DEVICES = {CPU: (CPU, CUDA_EMULATED), CUDA: (CUDA,)}


@cache
def right(operator: str, dtype: str, device: str) -> tuple[Subject, ...]:
    """Every right implementation that can run here, compiled if necessary.

    Left out: a backend or control that declares that it does not hold drawn-calls, and a backend that is judged only
    on request. Raises Broken, CannotBuild.
    """
    chosen = DTYPE_NAMES[dtype]
    found = [*_backends(operator, dtype, device), *_controls(operator, chosen, device)]
    return tuple(subject for subject in found if subject.declaration(PROPERTY.name) is None)


def _backends(operator: str, dtype: str, device: str) -> list[Subject]:
    found = []
    for slot in slots(Selection(operators=(operator,), devices=(device,), dtypes=(dtype,))):
        try:
            found.append(slot.subject())
        except CannotBuild:
            raise
        except Unavailable:  # absent, on request, or without its compiler or package
            continue
    return found


def _controls(operator: str, dtype: torch.dtype, device: str) -> list[Subject]:
    """Controls are Python functions; none is emulated, and a few are right on the CPU alone."""
    if device == CUDA_EMULATED:
        return []
    contract = discovery.operator(operator)
    controls = [
        control
        for control in registry.controls(operator)
        if PROPERTY.name not in control.gives_up and not (device == CUDA and control.cpu_alone)
    ]
    return [Subject(contract, control.name, device, dtype, control.function) for control in controls]
