"""The linear recurrence, right states with wrong gradients."""

from __future__ import annotations

import torch
from torch import Tensor

from tests.zoo.honest.scan import Recurrence
from tests.zoo.registry import fault


@fault("vjp-parity", r"gradient of (tokens|gates) was")
class GateOfTheOwnStepInBackward(Recurrence):
    """Backward uses the gate of a step where that of the next one belongs."""

    def gates_behind(self, a: Tensor) -> Tensor:
        return a


@fault("vjp-parity", r"gradient of gates was")
class StateOfTheStepItself(Recurrence):
    """The gradient of a gate is computed of the state behind it."""

    def states_before(self, states: Tensor, start: Tensor) -> Tensor:
        return states


@fault("vjp-parity", r"gradient of gates was .*scan\[initial\]")
class GatesGradientFromZero(Recurrence):
    """The gradient of the first gate is 0: backward takes the initial state for 0."""

    def states_before(self, states: Tensor, start: Tensor) -> Tensor:
        return super().states_before(states, torch.zeros_like(start))


@fault("vjp-parity", r"gradient of initial was")
class InitialGradientWithoutItsGate(Recurrence):
    """The gradient of the initial state is that of the first token."""

    def d_initial(self, a: Tensor, l: Tensor) -> Tensor:  # noqa: E741
        return super().d_initial(torch.ones_like(a), l)


@fault("vjp-parity", r"gradient of (tokens|gates) was")
class NothingIsPassedBack(Recurrence):
    """The gradient of a step is its own cotangent: backward is cut after each step."""

    def passed_back(self, a: Tensor, g: Tensor) -> Tensor:
        return g


@fault("sizes", r"gradient of (tokens|gates) was .*length-\d+")
class BackwardCutAfterAChunk(Recurrence):
    """Backward passes nothing from one chunk of 64 steps to the one before it."""

    def gates_behind(self, a: Tensor) -> Tensor:
        last = torch.arange(a.shape[2], device=a.device) % 64 == 63
        return torch.where(last, torch.zeros_like(a), super().gates_behind(a))


@fault("double-backward", r"second derivative|silently wrong|without a graph", dtype=torch.float64)
class BackwardWithoutGraph(Recurrence):
    """A second differentiation treats the states as constants."""

    def d_gates(self, l: Tensor, before: Tensor) -> Tensor:  # noqa: E741
        return l * before.detach()
