"""Outputs and gradients are right whatever two choices come together: sizes, layouts, values, cotangents, modes.

Each call of `harness.judging.combinations` is made three times, in its form of the operator. First with autograd,
outputs and gradients. Then twice without grad, at the same addresses: with other values, and with its own, so that an
answer that is kept for addresses or shapes is stale. No output may share memory with an input then.

An operator of several forms has further calls, so that every two choices of each form occur together in it. They are
compared with the reference (`harness.judging.near`), with grad and without.

Then, in one call after the other, the values of one input alone have something in common: they are 0, one number,
large, or equal in each row; indices count. Or all numbers have one sign. The call is made contiguous and transposed,
with grad and without, at small sizes and at larger ones, and compared with the reference too. So is a call with
ordinary values whose cotangents are one large number, and so are calls in which a dimension of some times a size, as
three gates are, has a small ratio to another one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import cycle, product
from typing import Any

from harness.judging.combinations import WITHOUT_GRAD, Combination, combinations_of, of_lengths, ordinary_sizes
from harness.judging.inference import hold_without_grad
from harness.judging.near import run_near
from harness.judging.property import Property
from harness.judging.scenario import Scenario
from harness.judging.scenarios import representative
from harness.judging.subject import Subject
from harness.judging.tally import Tally
from harness.report.levels import VALUES


def check(subject: Subject) -> dict[str, Any]:
    """Every call of the covering array, with and without grad; the figures say how many pairs of choices occurred."""
    found, tally = combinations_of(subject.whole or subject.operator), Tally(subject)
    calls = _own(subject, found.calls)
    for call in calls:
        tally.run(call.scenario)
    for call in calls:
        hold_without_grad(tally, call.scenario, call.without_grad)
    for call in _own(subject, found.further):
        run_near(tally, call.scenario)
        hold_without_grad(tally, call.scenario, call.without_grad, near=True)
    _in_common(tally)
    _of_a_large_number(tally)
    _of_lengths(tally)
    counts = {"pairs": found.pairs, "covered": found.pairs_covered}
    return {**tally.figures(), **counts, "triples": found.triples, "covered_triples": found.triples_covered}


def _in_common(tally: Tally) -> None:
    """Calls in which all numbers have one sign, or the values of one input alone have something in common.

    At small sizes and at larger ones, in every form.
    """
    operator = tally.subject.operator
    transposed = tuple((arg.name, "transposed") for arg in operator.inputs if len(arg.shape) > 1)
    sizes = tuple(tuple(each.items()) for each in (representative(operator).sizes, ordinary_sizes(operator)))
    families = (*operator.of_one_sign(), *operator.of_one_tensor())
    calls = product(families, sizes, zip(((), transposed), WITHOUT_GRAD, strict=True))
    for family, at, (layouts, mode) in tally.subject.shared(calls):
        scenario = Scenario(at, values=family.name, layouts=layouts)
        run_near(tally, scenario)
        hold_without_grad(tally, scenario, mode, near=True)


def _of_a_large_number(tally: Tally) -> None:
    """A call whose cotangents are one number beyond what they may be limited to: that of odd seeds."""
    outputs = tally.subject.operator.real_outputs
    for scaled in tally.subject.shared([tuple((arg.name, "scaled") for arg in outputs)] if outputs else ()):
        run_near(tally, Scenario.of(representative(tally.subject.operator), seed=1, cotangents=scaled))


def _of_lengths(tally: Tally) -> None:
    """Calls in which three gates, say, are as long as another dimension, or a small multiple of it."""
    calls = zip(of_lengths(tally.subject.operator), cycle(WITHOUT_GRAD), strict=False)
    for scenario, mode in tally.subject.shared(calls):
        run_near(tally, scenario)
        hold_without_grad(tally, scenario, mode, near=True)


def foreseen(subject: Subject) -> Iterator[Scenario]:
    """Without grad, the same calls are made again."""
    found = combinations_of(subject.whole or subject.operator)
    return (call.scenario for call in _own(subject, found.calls))


def _own(subject: Subject, calls: Iterable[Combination]) -> list[Combination]:
    """Those of this form; of them those of this shard, where shards share them out."""
    return list(subject.shared(call for call in calls if call.form == subject.operator.form))


PROPERTY = Property(
    "combinations",
    "right for every two choices of sizes, layouts, values, cotangents and modes",
    check,
    level=VALUES,
    outside=True,
    divisible=True,
    foreseen=foreseen,
)
