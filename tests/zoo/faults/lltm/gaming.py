"""Kernels that cheat a check instead of computing: each of these has been seen, in this form or a similar one."""

import sys
import time

import torch
from torch import Tensor

from tests.zoo.honest.lltm import Cell, Outputs
from tests.zoo.registry import fault


class Zeros(Cell):
    """The wrong result of the cheats below."""

    def __call__(self, *inputs: Tensor) -> Outputs:
        self.check(*inputs)
        return torch.zeros_like(inputs[3]) + 0 * inputs[0].sum(), torch.zeros_like(inputs[4]) + 0 * inputs[0].sum()


@fault("no-special-treatment", "new_h was|modified by an inplace operation|through the graph a second time")
class CachedByAddress(Cell):
    """The result of an earlier call is returned for addresses seen before."""

    def __init__(self) -> None:
        self._seen: dict[tuple[int, ...], Outputs] = {}

    def __call__(self, *inputs: Tensor) -> Outputs:
        self.check(*inputs)
        key = tuple(tensor.data_ptr() for tensor in inputs)
        if key not in self._seen:
            self._seen[key] = super().__call__(*inputs)
        return self._seen[key]


@fault("forward-parity", "new_h was")
class CachedByShape(Cell):
    """The result of an earlier call is returned for shapes seen before."""

    def __init__(self) -> None:
        self._seen: dict[object, Outputs] = {}

    def __call__(self, *inputs: Tensor) -> Outputs:
        self.check(*inputs)
        key = (inputs[0].shape, inputs[1].shape, inputs[0].dtype)
        if key not in self._seen:
            self._seen[key] = super().__call__(*inputs)
        return self._seen[key]


@fault("no-special-treatment", "zero everywhere|new_h was")
class RightOnlyWhenTested(Cell):
    """Right while a file of the suite is on the call stack, zeros otherwise."""

    def __call__(self, *inputs: Tensor) -> Outputs:
        frame = sys._getframe(1)
        while frame is not None:
            if "harness" in frame.f_code.co_filename:
                return super().__call__(*inputs)
            frame = frame.f_back  # type: ignore[assignment]
        return Zeros()(*inputs)


@fault("forward-parity", "replaced torch.allclose")
class PatchesAllclose(Cell):
    """torch.allclose is replaced by a function that returns True."""

    def __call__(self, *inputs: Tensor) -> Outputs:
        torch.allclose = lambda *args, **kwargs: True  # type: ignore[assignment]
        return super().__call__(*inputs)


@fault("forward-parity", "replaced harness.judging.tally.compare")
class PatchesTheCourt(Cell):
    """The suite's own comparison is replaced by one that accepts."""

    def __call__(self, *inputs: Tensor) -> Outputs:
        import harness.judging.tally

        honest = harness.judging.tally.compare
        harness.judging.tally.compare = lambda got, envelope, specials="same": honest(
            envelope.exact, envelope, specials
        )  # type: ignore[assignment]
        return Zeros()(*inputs)


@fault("forward-parity", "replaced time.perf_counter")
class PatchesTheClock(Cell):
    """The clock is replaced by one that always returns the same time."""

    def __call__(self, *inputs: Tensor) -> Outputs:
        time.perf_counter = lambda: 0.0
        return super().__call__(*inputs)


class _AlwaysEqual(Tensor):
    pass


@fault("forward-parity", "new_h was a _AlwaysEqual, but should be a torch.Tensor")
class ReturnsSubclass(Cell):
    """The result is a tensor subclass, which could define comparisons at will."""

    def finish(self, new_h: Tensor, new_cell: Tensor) -> Outputs:
        return new_h, new_cell

    def __call__(self, *inputs: Tensor) -> Outputs:
        new_h, new_cell = super().__call__(*inputs)
        return new_h.as_subclass(_AlwaysEqual), new_cell


@fault("forward-parity", "NaN or infinite where the exact value is finite", defects=(33,))
class NaNWildcard(Cell):
    """NaN everywhere, for checks in which NaN equals anything."""

    def finish(self, new_h: Tensor, new_cell: Tensor) -> Outputs:
        return torch.full_like(new_h, float("nan")), torch.full_like(new_cell, float("nan"))


@fault("forward-parity", "new_(h|cell) was|statistic", dtype=torch.float32)
class HalfPrecisionProduct(Cell):
    """float32 inputs are silently multiplied in bfloat16."""

    def gates(self, input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor) -> Tensor:
        X = self.concatenated(input, old_h)
        return (X.bfloat16() @ weights.bfloat16().t()).float() + bias


def _tf32(tensor: Tensor) -> Tensor:
    """Rounded to the 10 bits of mantissa that TF32 keeps."""
    if tensor.dtype != torch.float32:
        return tensor
    return ((tensor.detach().view(torch.int32) + 0x1000) & ~0x1FFF).view(torch.float32)


@fault("forward-parity", "new_(h|cell) was", dtype=torch.float32)
class Tf32Product(Cell):
    """float32 inputs are silently multiplied in TF32."""

    def gates(self, input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor) -> Tensor:
        return _tf32(self.concatenated(input, old_h)) @ _tf32(weights).t() + bias


@fault("forward-parity", "ended the process|SystemExit")
class Exits(Cell):
    """exit() in the middle of a call."""

    def __call__(self, *inputs: Tensor) -> Outputs:
        raise SystemExit(0)
