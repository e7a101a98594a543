"""A step whose state is fed back stays near the reference for a thousand steps.

A cell that rounds down instead of to nearest, or loses a thousandth of its value, is within the allowance of one step
and wrong after many. Here the state is fed back, with new inputs in each step, and compared with the float64 trajectory
after 1, 10, 100 and 1000 steps.

The allowance is found as for one step: the reference runs the same trajectory under `spec.rounding`, 16 times, and
twice more with the roundings of a real dtype: by eager torch in the dtype, and in float64 with only the state rounded.
The last two matter. Rounding to nearest is no random noise when a sum of 256 absorbs every 0.4 that is added to it, as
in bfloat16: these two runs stagnate as a right implementation does, and the random ones do not. Where they leave the
trajectory the envelope is wide and a wrong answer passes too; the figure `evidence` shows that.

The figure `horizon` is the number to quote: the steps for which the error grows at most like that of independent
roundings, as the square root of the number of steps, from what `harness.judging.compare` allows for one step, in
proportion to the state:

    RMS(e_t) <= 1.5 sqrt(t) (E_rms,1 / RMS(y_1) + u / sqrt(3)) max_{s<=t} RMS(y_s)

A biased step exceeds that line early, even while it is within the allowance.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from harness.errors import Failure, NoEvidence, NotApplicable
from harness.judging import stored
from harness.judging.by_identity import ByIdentity
from harness.judging.compare import compare, has_evidence
from harness.judging.property import Property
from harness.judging.scenario import Call, Scenario
from harness.judging.scenarios import representative
from harness.judging.subject import Subject
from harness.report.levels import GRADIENTS
from spec.amplitudes import UnlikeOneRun
from spec.contract import Draw, Operator, evaluate
from spec.envelope import Envelope, compared, gain
from spec.rounding import Rounding
from spec.roundoff import UNIT_ROUNDOFF
from spec.runs import RUNS

STEPS = 1000
CHECKPOINTS = (1, 10, 100, 1000)

Step = Callable[..., tuple[Tensor, ...]]
#: States by the name of the output: (steps, batch, ...), in float64.
Trajectory = dict[str, Tensor]


@dataclass(frozen=True)
class _Measure:
    """The exact trajectory, and the envelope of each state at each checkpoint."""

    exact: Trajectory
    envelopes: dict[tuple[str, int], Envelope]


def check(subject: Subject) -> dict[str, Any]:
    """A thousand steps forward, at small sizes."""
    operator = subject.operator
    if not operator.recurrent:
        raise NotApplicable(f"no output of {operator.name} feeds an input: the contract names none in `recurrent`")
    if any(arg.row_dim != 0 for arg in operator.outputs):
        raise NotApplicable("the rounded runs of the reference are stacked as rows of a batch, and there is no batch")
    scenario = Scenario.of(representative(operator))
    measure = _measure(ByIdentity(operator), scenario, subject.dtype)
    where = f"[{scenario.describe(operator)}]"

    def step(*inputs: Tensor) -> tuple[Tensor, ...]:
        return subject.outputs(Call(inputs, ()), scenario)

    initial, driven = _inputs(operator, scenario, subject.dtype, subject.torch_device)
    with torch.no_grad():
        found = _walk(operator, step, initial, driven)
    horizon = _horizon(subject, measure, found)
    drift: list[dict[str, Any]] = []
    evident = set()
    for (name, steps), envelope in measure.envelopes.items():
        comparison = compare(found[name][steps - 1], envelope)
        if not comparison.holds:
            was, should = found[name][steps - 1][comparison.place].item(), envelope.exact[comparison.place].item()
            worst = comparison.worst
            raise Failure(
                f"{name} after {steps} steps was {was:.9g} at {comparison.place}, but should be {should:.9g} "
                f"({comparison.special or f'{worst.name} error {worst.values}'}; "
                f"horizon {horizon[name]} steps) {where}",
                figures={}
                if comparison.special
                else {"worst": comparison.figures(f"{name} after {steps} steps", where)},
            )
        if has_evidence(envelope):
            evident.add((name, steps))
        largest = next(statistic for statistic in comparison.statistics if statistic.name == "largest")
        drift.append({"state": name, "steps": steps, "error": largest.seen, "allowed": largest.allowed})
    blind = [name for name, _ in operator.recurrent if (name, 1) not in evident]
    if blind:
        raise NoEvidence(f"zeros or a 5% error after one step would have passed too for: {', '.join(blind)}")
    evidence = sorted(f"{name} after {steps}" for name, steps in evident)
    return {"horizon": horizon, "drift": drift, "evidence": evidence}


def _inputs(
    operator: Operator, scenario: Scenario, dtype: torch.dtype, device: torch.device
) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Initial values of every input; and for those with rows that are not fed back, new values for every step."""
    sizes, draw = dict(scenario.sizes), Draw(scenario.seed)
    initial = {name: tensor.to(dtype).to(device) for name, tensor in operator.ordinary(sizes, draw).items()}
    fed = {name for _, name in operator.recurrent}
    driven = {
        arg.name: draw.normal((STEPS, *arg.shape_for(sizes)), evaluate(arg.scale, sizes)).to(dtype).to(device)
        for arg in operator.inputs
        if arg.row_dim is not None and arg.name not in fed
    }
    return initial, driven


def _walk(
    operator: Operator,
    step: Step,
    initial: dict[str, Tensor],
    driven: dict[str, Tensor],
    store: Callable[[Tensor], Tensor] = lambda state: state,
) -> Trajectory:
    """Feed the state back, step by step; `store` is what happens to it in between."""
    names = [arg.name for arg in operator.inputs]
    position = {arg.name: k for k, arg in enumerate(operator.outputs)}
    values = dict(initial)
    kept: dict[str, list[Tensor]] = {name: [] for name, _ in operator.recurrent}
    for number in range(STEPS):
        for name, sequence in driven.items():
            values[name] = sequence[number]
        outputs = step(*(values[name] for name in names))
        for source, target in operator.recurrent:
            values[target] = store(outputs[position[source]])
            kept[source].append(values[target])
    return {name: torch.stack(states).cpu().double() for name, states in kept.items()}


@lru_cache(maxsize=64)
def _measure(key: ByIdentity, scenario: Scenario, dtype: torch.dtype) -> _Measure:
    """The measure, from the reference only. All backends share it."""
    operator = key.operator
    initial, driven = _inputs(operator, scenario, dtype, torch.device("cpu"))
    given = {**initial, **{f"{name} of each step": tensor for name, tensor in driven.items()}}
    found = stored.results("recurrence", operator, dtype, given, lambda: _computed(operator, initial, driven, dtype))
    exact = {name: found.tensors[name] for name, _ in operator.recurrent}
    places = [(name, steps) for name in exact for steps in CHECKPOINTS]
    return _Measure(exact, {(name, steps): found.envelopes[f"{name} {steps}"] for name, steps in places})


def _computed(
    operator: Operator, initial: dict[str, Tensor], driven: dict[str, Tensor], dtype: torch.dtype
) -> stored.Results:
    wide = ({k: v.double() for k, v in initial.items()}, {k: v.double() for k, v in driven.items()})
    exact = _walk(operator, operator.forward, *wide)
    honest = [
        _walk(operator, operator.forward, initial, driven),
        _walk(operator, operator.forward, *wide, store=lambda state: state.to(dtype).double()),
    ]
    runs = [*_rounded(operator, *wide, dtype), *honest]
    envelopes = {
        f"{name} {steps}": _envelope(dtype, exact[name][steps - 1], [run[name][steps - 1] for run in runs])
        for name in exact
        for steps in CHECKPOINTS
    }
    return stored.Results(envelopes, exact)


def _rounded(
    operator: Operator, initial: dict[str, Tensor], driven: dict[str, Tensor], dtype: torch.dtype
) -> list[Trajectory]:
    """The Monte Carlo runs of the reference."""
    try:
        return _side_by_side(operator, initial, driven, dtype)
    except UnlikeOneRun:  # some intermediate result has no rows
        return _one_by_one(operator, initial, driven, dtype)


def _one_by_one(
    operator: Operator, initial: dict[str, Tensor], driven: dict[str, Tensor], dtype: torch.dtype
) -> list[Trajectory]:
    return [_walk(operator, _under(Rounding(dtype, seed), operator), initial, driven) for seed in range(RUNS)]


def _side_by_side(
    operator: Operator, initial: dict[str, Tensor], driven: dict[str, Tensor], dtype: torch.dtype
) -> list[Trajectory]:
    """Monte Carlo runs as copies of the batch: rows are independent, and each copy has the roundings of one run."""
    with_rows = {arg.name for arg in operator.inputs if arg.row_dim is not None}
    batch = next(len(v) for k, v in initial.items() if k in with_rows)
    copies = {k: torch.cat([v] * RUNS) if k in with_rows else v for k, v in initial.items()}
    sequences = {k: torch.cat([v] * RUNS, dim=1) for k, v in driven.items()}
    together = _walk(operator, _under(Rounding(dtype, 0, runs=RUNS, length=batch), operator), copies, sequences)
    parts = {name: states.chunk(RUNS, dim=1) for name, states in together.items()}
    return [{name: part[number] for name, part in parts.items()} for number in range(RUNS)]


def _under(mode: Rounding, operator: Operator) -> Step:
    def step(*inputs: Tensor) -> tuple[Tensor, ...]:
        with mode:
            return operator.forward(*inputs)

    return step


def _envelope(dtype: torch.dtype, exact: Tensor, runs: list[Tensor]) -> Envelope:
    """As in `spec.envelope`, but `sigma` includes the honest runs too: an error that they share is systematic."""
    usable, undecided = compared(exact, dtype, runs)
    y = exact[usable]
    errors = [run[usable] - y for run in runs]
    return Envelope(
        dtype,
        exact,
        usable,
        sigma=torch.stack([error.square() for error in errors]).mean(0).sqrt(),
        largest=max(float(error.abs().max()) for error in errors),
        rms=max(float(error.square().mean().sqrt()) for error in errors),
        gain=max(gain(error, y) for error in errors),
        undecided=undecided,
    )


def _horizon(subject: Subject, measure: _Measure, found: Trajectory) -> dict[str, int]:
    """For each state, the number of steps before its error first exceeds the square-root line."""
    horizon = {}
    for name, exact in measure.exact.items():
        rms_y, rms_e = (t.flatten(1).square().mean(1).sqrt() for t in (exact, found[name] - exact))
        one = measure.envelopes[name, 1]
        share = one.rms / float(rms_y[0]) + UNIT_ROUNDOFF[subject.dtype] / math.sqrt(3)
        line = 1.5 * torch.arange(1, STEPS + 1).sqrt() * share * rms_y.cummax(0).values
        beyond = (~(rms_e <= line)).nonzero()
        horizon[name] = int(beyond[0]) if len(beyond) else STEPS
    return horizon


PROPERTY = Property(
    "recurrence",
    "the state stays near the reference for a thousand steps fed back",
    check,
    level=GRADIENTS,
    outside=True,
)
