"""The linear recurrence, wrong states: other gates, lost chunks, other precision."""

from __future__ import annotations

import torch
from torch import Tensor

from tests.zoo.honest.scan import Optional, Recurrence
from tests.zoo.registry import fault

WRONG = r"states was .* but should be"


@fault("forward-parity", WRONG)
class GateOfTheStepBefore(Recurrence):
    """A state is multiplied by the gate of its own step, not by that of the next one."""

    def scanned(self, a: Tensor, x: Tensor, start: Tensor) -> Tensor:
        return super().scanned(a.roll(1, -1), x, start)


@fault("forward-parity", WRONG)
class GateBehindTheSum(Recurrence):
    """The gate multiplies the sum of state and token."""

    def new_state(self, a: Tensor, h: Tensor, x: Tensor) -> Tensor:
        return a * (h + x)


@fault("forward-parity", WRONG)
class GateTakesFromTheToken(Recurrence):
    """The token is multiplied by 1 - gate, as in minGRU's own formula."""

    def new_state(self, a: Tensor, h: Tensor, x: Tensor) -> Tensor:
        return a * h + (1 - a) * x


@fault("forward-parity", r"scan\[initial\]")
class ForgetsTheInitialState(Recurrence):
    """Every sequence begins with 0."""

    def start(self, initial: Optional, x: Tensor) -> Tensor:
        return super().start(None, x)


@fault("forward-parity", r"scan\[initial\]")
class InitialStateWithoutItsGate(Recurrence):
    """The initial state is added to the first token, without the first gate."""

    def states(self, gates: Tensor, tokens: Tensor, initial: Optional) -> Tensor:
        x = self.wide(tokens)
        a = torch.cat((torch.ones_like(x[..., :1]), self.wide(gates)[..., 1:]), -1)
        return self.scanned(a, x, self.start(initial, x))


@fault("sizes", r"length-\d+")
class ChunksForgetTheirPast(Recurrence):
    """The state is lost behind each chunk of 64 steps."""

    def kept(self, h: Tensor, t: int) -> Tensor:
        return torch.zeros_like(h) if t % 64 == 63 else h


@fault("forward-parity", WRONG, dtype=torch.bfloat16)
class StateRoundedFromStepToStep(Recurrence):
    """The state is kept in the half type between two steps."""

    def states(self, gates: Tensor, tokens: Tensor, initial: Optional) -> Tensor:
        self.dtype = tokens.dtype
        return super().states(gates, tokens, initial)

    def kept(self, h: Tensor, t: int) -> Tensor:
        return h.to(self.dtype).to(h.dtype)


@fault("forward-parity", r"states was .* but should be")
class ScanOfLogarithms(Recurrence):
    """States come from cumulative sums of logarithms of the gates: a gate of 0 makes NaN, the sign is lost."""

    def scanned(self, a: Tensor, x: Tensor, start: Tensor) -> Tensor:
        decay = a.abs().log().cumsum(-1)
        return decay.exp() * (start.unsqueeze(-1) + (x * (-decay).exp()).cumsum(-1))


@fault("forward-parity", r"values non-finite")
class SpreadsNaN(Recurrence):
    """States are a product with a matrix whose upper triangle is 0: 0 times NaN is NaN, before NaN begins."""

    def scanned(self, a: Tensor, x: Tensor, start: Tensor) -> Tensor:
        return super().scanned(a, x, start) + (x * 0).sum(-1, keepdim=True)


@fault("forward-parity", r"values growing")
class GatesLimitedToOne(Recurrence):
    """Gates are limited to 1, as if they were always a sigmoid."""

    def new_state(self, a: Tensor, h: Tensor, x: Tensor) -> Tensor:
        return super().new_state(a.clamp(max=1.0), h, x)


@fault("layouts", r"states was .*(gates|tokens) (transposed|strided|padded|offset)|strides of (gates|tokens)")
class TokensReadAsContiguous(Recurrence):
    """Tokens are read one after another, wherever they lie."""

    def states(self, gates: Tensor, tokens: Tensor, initial: Optional) -> Tensor:
        end = tokens.storage_offset() + tokens.numel()
        if tokens.device.type == "cpu" and tokens.untyped_storage().nbytes() // tokens.element_size() >= end:
            tokens = tokens.as_strided(tokens.shape, torch.empty(tokens.shape, device="meta").stride())
        return super().states(gates, tokens, initial)
