"""The scan is wrong from one step to the next, or at one of its ends."""

import torch
from torch import Tensor

from tests.zoo.honest.lltm_sequence import Outputs, Sequence, Steps
from tests.zoo.registry import fault


@fault("forward-parity", r"h was .*[^$]*dimension 0 0\.\.1 of 3")
class LastStateForAll(Sequence):
    """Every step returns the last step's h."""

    def joined(self, states: Steps, h0: Tensor) -> Tensor:
        return super().joined(states[-1:] * len(states), h0)


@fault("forward-parity", "h was")
class StatesOneStepEarly(Sequence):
    """h holds the states before the steps: it has h0, but not h_T."""

    def joined(self, states: Steps, h0: Tensor) -> Tensor:
        return super().joined([h0, *states][: len(states)], h0)


@fault("forward-parity", "c_T was")
class CellOfTheStepBefore(Sequence):
    """c_T is the cell before the last step."""

    def c_T(self, cells: Steps) -> Tensor:
        return super().c_T(cells[:-1] or cells)


@fault("forward-parity", "h was")
class BeginsWithAnEmptyCell(Sequence):
    """c0 is ignored: every sequence begins with a cell of zeros."""

    def start(self, h0: Tensor, c0: Tensor) -> Outputs:
        return h0, torch.zeros_like(c0)


@fault("forward-parity", "h was")
class ReadBackwards(Sequence):
    """The steps are read from the last to the first."""

    def steps_of(self, input: Tensor) -> Steps:
        return list(input.flip(0))


@fault("forward-parity", "h was")
class BatchFirst(Sequence):
    """The memory of input is read as (batch, steps, input_features)."""

    def steps_of(self, input: Tensor) -> Steps:
        steps, batch, features = input.shape
        return list(input.reshape(batch, steps, features).transpose(0, 1))


@fault("layouts", "h was .*[^$]*the strides of input are ignored")
class StridesIgnored(Sequence):
    """A step is read at its offset in a contiguous array, whatever the strides are."""

    def steps_of(self, input: Tensor) -> Steps:
        dense = tuple(torch.empty(input.shape, device="meta").stride())
        end = input.storage_offset() + input.numel()
        fits = input.untyped_storage().nbytes() // input.element_size() >= end
        return list(input.as_strided(input.shape, dense) if fits else input)


@fault("forward-parity", "h was")
class NotRecurrent(Sequence):
    """Every step uses h0: the state is not passed on."""

    def start(self, h0: Tensor, c0: Tensor) -> Outputs:
        self._h0 = h0
        return h0, c0

    def kept(self, h: Tensor, cell: Tensor) -> Outputs:
        return self._h0 + 0 * h, cell


@fault("invariants", "c_T was .* because an input gate of 0 leaves the cell as it was, however many steps")
class ForgetGate(Sequence):
    """The cell decays by 2^-9 a step, as with a forget gate that is nearly open."""

    def new_cell(self, cell: Tensor, candidate: Tensor, input_gate: Tensor) -> Tensor:
        return cell * (1 - 2.0**-9) + candidate * input_gate


@fault("forward-parity", "(h|c_T) was")
class CellKeptInHalf(Sequence):
    """Between the steps the cell is kept in bfloat16, to save memory."""

    def kept(self, h: Tensor, cell: Tensor) -> Outputs:
        return h, cell.bfloat16().to(cell.dtype)


@fault("forward-parity", "h was", dtype=torch.float64)
class DoubleThroughFloat(Sequence):
    """In double precision the state is rounded to single precision between the steps."""

    def kept(self, h: Tensor, cell: Tensor) -> Outputs:
        return h.float().double(), cell


@fault("sizes", "forward raised RuntimeError: stack expects a non-empty TensorList.*no-steps")
class NoStepsCrash(Sequence):
    """An empty sequence has nothing to stack."""

    def joined(self, states: Steps, h0: Tensor) -> Tensor:
        return torch.stack(states)


@fault("sizes", r"h was .*lltm_sequence\(long: [^$]*dimension 0 32\.\.63 of 64")
class ThirtyTwoStepsAtMost(Sequence):
    """Steps after the thirty-second are zero, as if a buffer had no room for them."""

    def joined(self, states: Steps, h0: Tensor) -> Tensor:
        return super().joined([h if t < 32 else torch.zeros_like(h) for t, h in enumerate(states)], h0)


@fault("rejects-wrong-calls", "input with its first two dimensions exchanged .* silently accepted")
class EitherOrder(Sequence):
    """An input with the batch first is accepted too, if it fits."""

    def __call__(self, input: Tensor, weights: Tensor, bias: Tensor, h0: Tensor, c0: Tensor) -> Outputs:
        tensors = isinstance(input, Tensor) and isinstance(h0, Tensor)
        if tensors and input.dim() == 3 and h0.dim() == 2 and input.shape[1] != h0.shape[0] == input.shape[0]:
            input = input.transpose(0, 1)
        return super().__call__(input, weights, bias, h0, c0)
