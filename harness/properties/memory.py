"""Only what backward needs is kept, it is freed after backward, and a thousand calls leave nothing behind.

Bytes are counted where they are allocated (`harness.judging.bytes_in_use`), so nothing can be kept out of sight: on
`ctx`, in a closure, or by C++. Three limits are checked:

- Between forward and backward, besides inputs and outputs, at most four times what the contract lists may be kept
  (`Operator.saved`: what autograd keeps of the reference). Four times, because an implementation that computes in
  float64 keeps twice as much, and other formulas may have up to twice as many steps. The growth with the batch is
  compared, since the nodes of a graph and copies of parameters do not grow with it.
- Backward without retain_graph frees it although the outputs live on: the inputs are freed, and at most a quarter of
  that figure stays.
- Repeated calls of forward and backward leave as many bytes in use as before: a thousand of them, or a quarter of that
  if the GPU is simulated, which takes a hundred times as long. If some are left, twice as many calls are made, and
  again: on a loaded machine the threads of CUDA and autograd hold some 60 kilobytes of malloc's, now more, now less,
  however many calls were made.

On CUDA the report also gives the peak of one forward and backward.
"""

from __future__ import annotations

import gc
import weakref
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import torch
from torch import Tensor

from backends.base import SIMULATED
from harness.errors import Failure, NotApplicable
from harness.judging import bytes_in_use
from harness.judging.guided import volume
from harness.judging.property import INTEGRATION, Property
from harness.judging.scenario import Call, Scenario
from harness.judging.scenarios import smallest, tagged
from harness.judging.subject import Subject
from harness.properties.compile import dynamic_symbol
from harness.report.levels import SAFE
from spec.contract import Sizes

#: Calls that must leave nothing behind, and calls before them, in which permanent buffers may be made.
CALLS, SIMULATED_CALLS, BEFORE = 1000, 250, 50
#: Bytes that may stay of each call: fewer than the smallest tensor has.
_LEFT = 8
#: How often twice as many calls are made until nothing is left behind.
_ROUNDS = 5
#: Bytes by which the limits of two batches must differ: malloc's rounding is small beside it.
_GROWTH = 2**18
#: Elements of a call that takes seconds to make, and a row that is still many times as long as what is kept of it.
_ELEMENTS, _SHORTEST = 2**21, 32
#: The multiple of what the contract lists that may be kept.
_TIMES = 4


def check(subject: Subject) -> dict[str, Any]:
    """What one call keeps, at two sizes; then many calls."""
    why = bytes_in_use.unaccountable()
    if why:
        raise NotApplicable(f"bytes cannot be counted on this machine: {why}")
    with bytes_in_use.of_what_follows():
        _inputs_die(subject, smallest(subject.operator))
        figures: dict[str, Any] = {"growth of calls": _growth(subject, smallest(subject.operator))}
        if subject.operator.saved:
            figures["kept"] = _kept(subject)
        return figures


def _inputs_die(subject: Subject, scenario: Scenario) -> None:
    """Check that only the caller holds an input after backward, although the outputs live."""
    leaves = subject.realise(scenario)
    # Leaves are held by the nodes that accumulate their gradients; computed tensors only by the code that saved them.
    call = Call(tuple(t * 1 if t.requires_grad else t.clone() for t in leaves.inputs), leaves.cotangents)
    outputs = subject.outputs(call, scenario)
    _backward(subject, scenario, outputs, leaves)
    alive = {arg.name: weakref.ref(x) for arg, x in zip(subject.operator.inputs, call.inputs, strict=True)}
    del call
    gc.collect()
    held = [name for name, reference in alive.items() if reference() is not None]
    del outputs
    if held:
        raise Failure(
            f"{', '.join(held)} was alive after backward, but should be freed: backward without retain_graph drops "
            f"what save_for_backward holds, and nothing else should hold it [{scenario.describe(subject.operator)}]"
        )


def _backward(subject: Subject, scenario: Scenario, outputs: tuple[Tensor, ...], call: Call) -> None:
    pairs = zip(subject.operator.inputs, call.inputs, strict=True)
    leaves = {arg.name: tensor for arg, tensor in pairs if tensor.requires_grad}
    if leaves:
        ys, gs = call.used(outputs)
        with subject.in_backward(leaves, scenario):
            torch.autograd.grad(ys, list(leaves.values()), gs, allow_unused=True)


def _growth(subject: Subject, scenario: Scenario) -> str:
    call = subject.realise(scenario)
    first = SIMULATED_CALLS if subject.device in SIMULATED else CALLS
    for _ in range(BEFORE):
        _backward(subject, scenario, subject.outputs(call, scenario), call)
    for calls in (first << doubled for doubled in range(_ROUNDS)):
        before = _everywhere(subject)
        for _ in range(calls):
            _backward(subject, scenario, subject.outputs(call, scenario), call)
        grown = [now - then for now, then in zip(_everywhere(subject), before, strict=True)]
        if max(grown) <= _LEFT * calls:
            break
    else:
        raise Failure(
            f"{max(grown)} bytes more were in use after {calls} calls of forward and backward, but none should be: "
            f"{max(grown) / calls:.0f} bytes of each call are kept [{scenario.describe(subject.operator)}]"
        )
    return f"{max(grown)} bytes over {calls} calls"


def _everywhere(subject: Subject) -> tuple[int, ...]:
    """Bytes in use on the device and, if that is a GPU, on the host too."""
    device = bytes_in_use.in_use(subject.torch_device)
    return (device, bytes_in_use.on_host()) if subject.device == "cuda" else (device,)


@dataclass(frozen=True)
class _Held:
    """Bytes in use besides inputs and outputs, before and after backward; and the peak (0 on the CPU)."""

    before: int
    after: int
    peak: int


def _kept(subject: Subject) -> dict[str, Any]:
    """Compare what is kept at two sizes of the batch with the contract's list."""
    small, large = _two_sizes(subject)
    where = f"[{large.describe(subject.operator)}]"
    may = _may_keep(subject, dict(large.sizes)) - _may_keep(subject, dict(small.sizes))
    less, more = _held(subject, small), _held(subject, large)
    kept, stays = more.before - less.before, more.after - less.after
    listed = ", ".join(arg.name for arg in subject.operator.saved)
    if kept > _TIMES * may:
        raise Failure(
            f"{kept} bytes more are kept between forward and backward than at half of {dynamic_symbol(large)}, but "
            f"should be {_TIMES * may} at most, {_TIMES} times as {listed} are in the contract {where}"
        )
    if stays > may // 4:
        raise Failure(
            f"{stays} of {kept} bytes that were kept for backward were still in use after it, but should be freed, "
            f"though the outputs live {where}"
        )
    figures = {"bytes": kept, "listed": may, "after backward": stays, "for": dict(large.sizes)}
    return {**figures, "peak": more.peak} if subject.device == "cuda" else figures


def _two_sizes(subject: Subject) -> tuple[Scenario, Scenario]:
    """A usual size with a batch so large that the limit is many pages, and twice that batch.

    Where little is listed of a row, as of a norm without a weight, that takes many rows: they are made shorter.
    """
    cases = tagged(subject.operator, "benchmark") or tagged(subject.operator, "size")
    small = Scenario.of(cases[0] if "benchmark" in cases[0].tags else cases[-1])
    batch = dynamic_symbol(small)
    while True:
        large = _resized(small, batch, 2 * dict(small.sizes)[batch])
        if _may_keep(subject, dict(large.sizes)) - _may_keep(subject, dict(small.sizes)) >= _GROWTH:
            return small, large
        sizes = dict(large.sizes)
        widest = max((name for name in sizes if name != batch), key=sizes.__getitem__, default=batch)
        if volume(subject.operator, sizes) > _ELEMENTS and widest != batch and sizes[widest] >= 2 * _SHORTEST:
            small = _resized(small, widest, sizes[widest] // 2)
        else:
            small = large


def _resized(scenario: Scenario, symbol: str, size: int) -> Scenario:
    return replace(scenario, sizes=tuple((dict(scenario.sizes) | {symbol: size}).items()))


def _may_keep(subject: Subject, sizes: Sizes) -> int:
    return sum(prod(arg.shape_for(sizes)) for arg in subject.operator.saved) * subject.dtype.itemsize


def _held(subject: Subject, scenario: Scenario) -> _Held:
    """Measure the second of two calls: permanent buffers are made in the first."""
    call = subject.realise(scenario)
    _backward(subject, scenario, subject.outputs(call, scenario), call)
    empty = bytes_in_use.in_use(subject.torch_device)
    if subject.device == "cuda":
        torch.cuda.reset_peak_memory_stats()
    outputs = subject.outputs(call, scenario)
    own = sum(y.nbytes for y in outputs)
    before = bytes_in_use.in_use(subject.torch_device) - empty - own
    _backward(subject, scenario, outputs, call)
    after = bytes_in_use.in_use(subject.torch_device) - empty - own
    peak = bytes_in_use.peak() - empty if subject.device == "cuda" else 0
    return _Held(before, after, peak)


PROPERTY = Property(
    "memory",
    "only what backward needs is kept, and nothing after it",
    check,
    view=INTEGRATION,
    level=SAFE,
    dtypes=("float32",),
    why_only="what is kept is kept by the same code in every dtype",
)
