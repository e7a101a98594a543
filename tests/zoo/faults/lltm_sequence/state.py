"""One call affects another, or a change between forward and backward goes unnoticed."""

import torch
from torch import Tensor

from tests.zoo.honest.lltm_sequence import Outputs, Sequence, Steps
from tests.zoo.registry import fault


@fault("determinism", "(h|c_T) was .* in call 2, but should be .* as in the first call, bit for bit")
class StateCarriedOver(Sequence):
    """A sequence begins with the last state of the previous one of its size, as in a stateful layer."""

    def __init__(self) -> None:
        self._last: dict[object, Tensor] = {}

    def start(self, h0: Tensor, c0: Tensor) -> Outputs:
        return h0, self._last.get((c0.shape, c0.dtype), c0)

    def c_T(self, cells: Steps) -> Tensor:
        self._last[cells[-1].shape, cells[-1].dtype] = cells[-1].detach()
        return super().c_T(cells)


@fault("concurrent-threads", "in thread . of 4 .* though right when it called alone: .* was")
class CellsOfTheLastForward(Sequence):
    """Backward uses cells and gates of the last forward, of whichever thread."""

    def __call__(self, *inputs: Tensor) -> Outputs:
        self._in_forward = True
        outputs = super().__call__(*inputs)
        self._in_forward = False
        return outputs

    def scan(
        self, input: Tensor, weights: Tensor, bias: Tensor, h0: Tensor, c0: Tensor
    ) -> tuple[Steps, Steps, Steps, Steps]:
        if self._in_forward or self._kept[1][0].shape != c0.shape or len(self._kept[0]) != len(input):
            self._kept = super().scan(input, weights, bias, h0, c0)
        return self._kept


@fault("repeated-backward", "weights was changed in place between forward and backward, which raised nothing")
class WeightsSavedWithoutVersion(Sequence):
    """The weights are saved as .data, which the version counter does not cover: backward silently uses changed ones."""

    def saved(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        input, weights, *others = inputs
        return input, weights.data, *others


@fault("repeated-backward", "second backward through one graph .*: gradient of bias was")
class BackwardAccumulates(Sequence):
    """The steps' gradients of the bias are added into a buffer that forward cleared."""

    def saved(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        self._total = torch.zeros_like(inputs[2])
        return super().saved(*inputs)

    def d_bias(self, d_gates: Steps) -> Tensor:
        self._total = self._total + super().d_bias(d_gates)
        return self._total


@fault("inference-modes", "under (inference_mode|no_grad): h was .*, but should be")
class LastStateForInference(Sequence):
    """Without grad only the last state is written."""

    def __call__(self, *inputs: Tensor) -> Outputs:
        self._trains = torch.is_grad_enabled()
        return super().__call__(*inputs)

    def joined(self, states: Steps, h0: Tensor) -> Tensor:
        last = [*(torch.zeros_like(h) for h in states[:-1]), *states[-1:]]
        return super().joined(states if self._trains else last, h0)


@fault("no-side-effects", "changed .* elements of c0 in place")
class CellUpdatedInPlace(Sequence):
    """The cell is updated in place step by step, in the caller's buffer."""

    def c_T(self, cells: Steps) -> Tensor:
        cells[0].copy_(cells[-1])
        return super().c_T(cells)
