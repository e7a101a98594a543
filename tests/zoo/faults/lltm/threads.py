"""Right only if one thread calls it."""

import torch
from torch import Tensor

from tests.zoo.honest.lltm import Cell, Outputs
from tests.zoo.registry import fault


@fault("concurrent-threads", "in thread . of 4 .* though right when it called alone: .* was")
class GatesOfLastForward(Cell):
    """Backward uses the pre-activations of the last forward, of whichever thread."""

    def gates(self, input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor) -> Tensor:
        if self._in_forward or self._gates.shape[0] != len(input):
            self._gates = super().gates(input, weights, bias, old_h)
        return self._gates

    def __call__(self, *inputs: Tensor) -> Outputs:
        self._in_forward = True
        outputs = super().__call__(*inputs)
        self._in_forward = False
        return outputs


@fault("concurrent-threads", "in thread . of 4 .* though right when it called alone: .* was")
class ScratchShared(Cell):
    """One buffer of each size holds the pre-activations during a call, which is right for one caller at a time."""

    def __init__(self) -> None:
        self._scratch: dict[tuple[object, ...], Tensor] = {}

    def gates(self, input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor) -> Tensor:
        z = super().gates(input, weights, bias, old_h)
        if type(z) is not Tensor:
            return z
        buffer = self._scratch.setdefault((z.shape, z.dtype), torch.empty_like(z))
        buffer.copy_(z.detach())
        return buffer

    def split(self, gates: Tensor) -> tuple[Tensor, ...]:
        return tuple(part.clone() for part in super().split(gates))


@fault("concurrent-threads", "in thread . of 4 that called at once: forward raised RuntimeError: .*reentrant")
class NotReentrant(Cell):
    """A second call during the first raises."""

    _is_busy = False

    def __call__(self, *inputs: Tensor) -> Outputs:
        if self._is_busy:
            raise RuntimeError("lltm is not reentrant")
        self._is_busy = True
        try:
            return super().__call__(*inputs)
        finally:
            self._is_busy = False
