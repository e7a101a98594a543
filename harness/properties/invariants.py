"""What holds without a reference: rows of the batch are independent, the VJP is linear, the contract's closed forms.

An identity says that two ways of computing give the same result: the batch in another order, in parts, or row by row;
the VJP of a combination of cotangents, or the combination of their VJPs. No exact value is needed, only how much error
each way may make. Let y be what both should give, and l = y + a and r = y + b what they gave. The errors that
`harness.judging.compare` allows form a convex set, symmetric about 0: four bounds on norms. So if a and b are both in
it, then so is

    (l - r) / 2 = (a - b) / 2.

So comparing half the difference with the allowance rejects nothing that is right, and needs no tolerance of its own.
The allowance is that of the way itself: the reference computes in the same way under `spec.rounding`, with the same
splits and sums. If the two ways allow different errors, the larger one counts.

Integers and truth values are left out of the identities: each call is compared exactly anyway, by other properties.

The contract's invariants (`Operator.invariants`) give outputs in closed form at inputs made for them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from harness.errors import Failure, NoEvidence, NotApplicable
from harness.judging import stored
from harness.judging.bits import hold_bits, results
from harness.judging.by_identity import ByIdentity
from harness.judging.compare import Comparison, compare, shown
from harness.judging.oracle import evaluate, expected_of, given
from harness.judging.property import Property
from harness.judging.scenario import Call, Scenario, realise
from harness.judging.scenarios import SEEDS, representative
from harness.judging.subject import Subject
from harness.report.levels import VALUES
from spec.contract import Draw, Invariant, Operator, TensorArg
from spec.envelope import Envelope, envelopes, everywhere

Values = dict[str, Tensor]

#: Rows of the batch: a prime, split unevenly into parts that no vector length divides.
ROWS = 5
PARTS = ((0, 2), (2, 5))
ORDER = (3, 0, 4, 2, 1)

#: Cotangents are multiples of 1/8 up to 1, and the combination is 4 g1 - 2 g2: exact in every dtype (6 bits).
GRID = tuple(k / 8 for k in range(-8, 9))
FACTORS = (4.0, -2.0)

#: The wrong answer that each identity must tell from the right one: one way 5% larger than the other.
WRONG = 1.05


@dataclass(frozen=True)
class _Comparand:
    """Some calls, and how their results are combined. `words` follow «new_h of ...»."""

    words: str
    calls: tuple[Call, ...]
    combine: Callable[[list[Values]], Values]


@dataclass(frozen=True)
class _Identity:
    """Two ways that give the same result."""

    claim: str
    way: _Comparand
    other: _Comparand


def check(subject: Subject) -> dict[str, Any]:
    """Every identity that applies to the operator, with other values until a wrong answer would have shown."""
    operator = subject.operator
    sizes = dict(representative(operator).sizes)
    sizes |= {"batch": ROWS} if "batch" in sizes else {}
    scenario = Scenario(tuple(sizes.items()), name="invariants")
    seen: dict[str, bool] = {}
    for seed in range(SEEDS):
        drawn = replace(scenario, seed=seed)
        identities, measures = _identities(ByIdentity(operator), drawn, subject.dtype)
        for identity, envelopes_of_identity in zip(identities, measures, strict=True):
            _hold(subject, drawn, identity, envelopes_of_identity, seen)
        if all(seen.values()):
            break
    if not identities and not operator.invariants:
        raise NotApplicable(f"{operator.title} has no gradient, and the contract has no closed form of its outputs")
    for invariant in operator.invariants:
        _hold_closed_form(subject, scenario, invariant, seen)
    blind = sorted(name for name, is_evident in seen.items() if not is_evident)
    if blind and operator.by_reference:
        # What the reference loses there, no choice of the contract's author can mend. Other properties see the tensor.
        raise NotApplicable(
            f"a 5% error in one of two ways is within the rounding of the reference in {subject.dtype_name} for: "
            f"{', '.join(blind)}"
        )
    if blind:
        raise NoEvidence(f"a 5% error in one of two ways would have passed too for: {', '.join(blind)}")
    named = [identity.claim for identity in identities] + [invariant.name for invariant in operator.invariants]
    return {"laws": named, "tensors": len(seen)}


@lru_cache(maxsize=64)
def _identities(
    key: ByIdentity, scenario: Scenario, dtype: torch.dtype
) -> tuple[tuple[_Identity, ...], tuple[dict[str, Envelope], ...]]:
    """The identities that apply, with CPU calls, and what each allows. All backends share them and never see them."""
    operator = key.operator
    call = realise(operator, scenario, dtype)
    identities = [_linear(call)] if operator.has_gradient else []
    if operator.real_outputs and all(arg.row_dim is not None for arg in operator.outputs):
        identities += [_reordered(operator, call), _apart(operator, call, PARTS, "in two parts")]
        identities += [_apart(operator, call, tuple((k, k + 1) for k in range(ROWS)), "row by row")]

    def computed() -> stored.Results:
        measures = [_allowed(operator, identity, dtype) for identity in identities]
        return stored.Results({f"{k} {name}": one for k, found in enumerate(measures) for name, one in found.items()})

    found = stored.results("identities", operator, dtype, given(operator, call), computed).envelopes
    measures: list[dict[str, Envelope]] = [{} for _ in identities]
    for key_of_one, envelope in found.items():
        place, _, name = key_of_one.partition(" ")
        measures[int(place)][name] = envelope
    return tuple(identities), tuple(measures)


def _picked(arg: TensorArg, tensor: Tensor, rows: tuple[int, ...]) -> Tensor:
    return tensor.clone() if arg.row_dim is None else tensor.index_select(arg.row_dim, torch.tensor(rows))


def _rows(operator: Operator, call: Call, rows: tuple[int, ...]) -> Call:
    """The call with these rows of the batch."""
    inputs = tuple(_picked(arg, t, rows) for arg, t in zip(operator.inputs, call.inputs, strict=True))
    cotangents = zip(operator.outputs, call.cotangents, strict=True)
    return Call(inputs, tuple(g if g is None else _picked(arg, g, rows) for arg, g in cotangents))


def _row_dims(operator: Operator) -> dict[str, int]:
    """The dimension of the rows, for every output and gradient that has one."""
    named = {arg.name: arg for arg in operator.outputs} | {f"gradient of {arg.name}": arg for arg in operator.inputs}
    return {name: arg.row_dim for name, arg in named.items() if arg.row_dim is not None}


def _linear(call: Call) -> _Identity:
    draw = Draw(1)
    first, second = (
        tuple(None if g is None else draw.choice(tuple(g.shape), GRID).to(g.dtype) for g in call.cotangents)
        for _ in range(2)
    )
    a, b = FACTORS
    pairs = zip(first, second, strict=True)
    both = tuple(None if g1 is None or g2 is None else a * g1 + b * g2 for g1, g2 in pairs)

    def gradients(found: list[Values]) -> Values:
        return {name: tensor for name, tensor in found[0].items() if name.startswith("gradient of ")}

    def combined(found: list[Values]) -> Values:
        return {name: a * tensor + b * found[1][name] for name, tensor in gradients(found).items()}

    return _Identity(
        "the VJP is linear in the cotangents",
        _Comparand(f"the cotangents {a:g}*g1 {b:+g}*g2", (Call(call.inputs, both),), gradients),
        _Comparand(
            f"g1 and g2 apart, combined {a:g} to {b:g}",
            (Call(call.inputs, first), Call(call.inputs, second)),
            combined,
        ),
    )


def _reordered(operator: Operator, call: Call) -> _Identity:
    rows = _row_dims(operator)
    back = sorted(range(ROWS), key=lambda k: ORDER[k])

    def put_back(found: list[Values]) -> Values:
        # By slices, which are exact under `spec.rounding`.
        return {
            n: torch.cat([t.narrow(rows[n], k, 1) for k in back], dim=rows[n]) if n in rows else t
            for n, t in found[0].items()
        }

    return _Identity(
        "permuting the batch permutes outputs and row gradients, and nothing else",
        _Comparand("the batch permuted", (_rows(operator, call, ORDER),), put_back),
        _Comparand("the batch as it was", (call,), lambda found: found[0]),
    )


def _apart(operator: Operator, call: Call, parts: tuple[tuple[int, int], ...], words: str) -> _Identity:
    rows = _row_dims(operator)

    def joined(found: list[Values]) -> Values:
        values = {}
        for name in found[0]:
            pieces = [values_of_part[name] for values_of_part in found]
            together = name in rows
            values[name] = torch.cat(pieces, dim=rows[name]) if together else sum(pieces[1:], start=pieces[0])
        return values

    return _Identity(
        f"a batch is the sum of its rows: {words}",
        _Comparand(f"the batch {words}", tuple(_rows(operator, call, tuple(range(*part))) for part in parts), joined),
        _Comparand("the whole batch", (call,), lambda found: found[0]),
    )


def _names(operator: Operator) -> set[str]:
    """The tensors of which identities hold."""
    kept = {f"gradient of {arg.name}" for arg in operator.inputs if arg.differentiable}
    return kept | {arg.name for arg in operator.real_outputs}


def _named(operator: Operator, values: tuple[Tensor, ...]) -> Values:
    names = [arg.name for arg in operator.outputs] + [f"gradient of {arg.name}" for arg in operator.inputs]
    kept = _names(operator)
    return {name: value for name, value in zip(names, values, strict=True) if name in kept}


def _allowed(operator: Operator, identity: _Identity, dtype: torch.dtype) -> dict[str, Envelope]:
    """The allowance of each tensor: the larger of those of the two ways."""
    allowed: dict[str, Envelope] = {}
    for way in (identity.way, identity.other):
        exact_calls = [call.to_float64() for call in way.calls]
        eager = [
            {name: value.double() for name, value in _named(operator, evaluate(operator, call)).items()}
            for call in way.calls
        ]

        def go(*given: Tensor, way: _Comparand = way, calls: list[Call] = exact_calls) -> tuple[Tensor, ...]:
            tensors = iter(given)
            return tuple(way.combine([_named(operator, evaluate(operator, c.of(tensors))) for c in calls]).values())

        together = way.combine(eager)
        inputs = [tensor for call in exact_calls for tensor in call.tensors]
        found = envelopes(go, tuple(together.values()), dtype, inputs=inputs)
        for name, envelope in zip(together, found, strict=True):
            allowed[name] = _larger(allowed[name], envelope) if name in allowed else envelope
    return allowed


def _larger(one: Envelope, other: Envelope) -> Envelope:
    return replace(
        one,
        usable=one.usable & other.usable,
        sigma=torch.maximum(everywhere(one), everywhere(other))[one.usable & other.usable],
        largest=max(one.largest, other.largest),
        rms=max(one.rms, other.rms),
        gain=max(one.gain, other.gain),
        undecided=one.undecided | other.undecided | (one.usable ^ other.usable),
    )


def _computed(subject: Subject, scenario: Scenario, way: _Comparand) -> Values:
    """Make the calls of a way by the candidate, and combine the results in float64."""
    found = []
    for call in way.calls:
        inputs = tuple(
            t.to(subject.torch_device, copy=True).requires_grad_(arg.differentiable)
            for arg, t in zip(subject.operator.inputs, call.inputs, strict=True)
        )
        cotangents = tuple(g if g is None else g.to(subject.torch_device, copy=True) for g in call.cotangents)
        sizes = dict(scenario.sizes)
        for arg, tensor in zip(subject.operator.inputs, inputs, strict=True):
            sizes |= {} if arg.row_dim is None else {"batch": tensor.shape[arg.row_dim]}
        of_call = replace(scenario, sizes=tuple(sizes.items()))
        got = results(subject, Call(inputs, cotangents), of_call)
        kept = _names(subject.operator)
        found.append({name: tensor.detach().cpu().double() for name, tensor in got.items() if name in kept})
    return way.combine(found)


def _half_difference(one: Tensor, other: Tensor, envelope: Envelope) -> Comparison:
    return compare(envelope.exact + (one - other) / 2, envelope)


def _hold(
    subject: Subject, scenario: Scenario, identity: _Identity, allowed: dict[str, Envelope], seen: dict[str, bool]
) -> None:
    left, right = _computed(subject, scenario, identity.way), _computed(subject, scenario, identity.other)
    for name, value in left.items():
        envelope = allowed[name]
        found = _half_difference(value, right[name], envelope)
        evident = not _half_difference(WRONG * envelope.exact, envelope.exact, envelope).holds
        seen[name] = seen.get(name, False) or evident
        if not found.holds:
            was, should = value[found.place].item(), right[name][found.place].item()
            raise Failure(
                f"{name} of {identity.way.words} was {was:.9g} at {found.place}, but should be {should:.9g}, that of "
                f"{identity.other.words}: {identity.claim} "
                f"({found.worst.name} of half the difference {found.worst.values}) "
                f"[{scenario.describe(subject.operator)}]",
                figures={"worst": found.figures(name, scenario.describe(subject.operator))},
            )


def _hold_closed_form(subject: Subject, scenario: Scenario, invariant: Invariant, seen: dict[str, bool]) -> None:
    operator, sizes = subject.operator, dict(scenario.sizes)
    where = f"[{replace(scenario, name=invariant.name).describe(operator)}]"
    made = invariant.make(sizes, Draw(0), subject.dtype)
    inputs = tuple(arg.cast(made[arg.name], subject.dtype) for arg in operator.inputs)
    call = Call(inputs, realise(operator, scenario, subject.dtype).cotangents)
    exact = invariant.outputs(*call.to_float64().inputs)
    measure = expected_of(operator, call, subject.dtype)
    with torch.no_grad():
        found = subject.outputs(Call(tuple(t.to(subject.torch_device, copy=True) for t in inputs), ()), scenario)
    got = {arg.name: y for arg, y in zip(operator.outputs, found, strict=True)}
    for name, should in exact.items():
        envelope = replace(measure.outputs[name], exact=should)
        if not compare(measure.outputs[name].exact, envelope).holds:
            raise ValueError(f"the contract of {operator.name} contradicts itself: {invariant.claim}, says {invariant}")
        if invariant.bitwise:
            like = f"because {invariant.claim}"
            stored_as = next(arg for arg in operator.outputs if arg.name == name)
            hold_bits({name: got[name].cpu()}, {name: stored_as.cast(should, subject.dtype)}, "", like, where)
            continue
        seen[name] = seen.get(name, False) or not compare(WRONG * should, envelope).holds
        comparison = compare(got[name], envelope)
        if not comparison.holds:
            was, value = got[name][comparison.place].item(), should[comparison.place].item()
            raise Failure(
                f"{name} was {shown(was)} at {comparison.place}, but should be {shown(value)}: {invariant.claim} "
                f"({comparison.worst.name} error {comparison.worst.values}) {where}",
                figures={"worst": comparison.figures(name, where)},
            )


PROPERTY = Property(
    "invariants", "rows are independent, the VJP is linear, closed forms hold", check, level=VALUES, outside=True
)
