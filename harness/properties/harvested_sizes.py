"""Outputs and gradients are right around every integer of the implementation's source: see `judging.constants`.

For an integer c these sizes are asked of each symbol, the others being small: c + 1, 2c + 1, c and c - 1. Where a
dimension is k times a symbol, they are asked for c/k too. At the next multiple of small blocks, and at the next size
that is no multiple of any, the call is made in other ways too: for every subset of inputs that require grad, with
cotangents that repeat numbers, with equal rows, in both modes without grad, and with unusual values, since a threshold
may count values of one kind. At c itself, as one size or two, the other sizes being equal, it is made without grad.
Then every two sizes are asked in ratios of 1 to 4, the smallest one beyond c. Of sizes that make large tensors less is
asked. The figures say what was left out.

Beyond c, numbers are asked that all have one sign, and for each input that its values have something in common: they
are 0, one number, or equal in each row. Large tensors are asked with cotangents that repeat numbers. These calls are
compared with the reference (`harness.judging.near`), and so there may be many. So are calls of so many steps that their
expected results would take half a minute each.

float32 and bfloat16 are asked all of it. The other dtypes are asked what is beyond a constant, with ordinary and
unusual values: a threshold that is meant for one dtype, such as the width of a vector, is found there. The rest of the
source is the same in every dtype.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, islice, product
from random import Random
from typing import Any

from backends.base import SIMULATED
from harness.errors import NotApplicable
from harness.judging import harvested
from harness.judging.combinations import WITHOUT_GRAD
from harness.judging.constants import constants_of
from harness.judging.inference import hold_without_grad
from harness.judging.like_whole import run_like_whole
from harness.judging.near import run_near
from harness.judging.property import Property
from harness.judging.scenario import REPEATED, Scenario, kinds_of
from harness.judging.scenarios import proper_subsets
from harness.judging.subject import Subject
from harness.judging.tally import Tally
from harness.report.levels import VALUES
from spec.contract import Operator

#: Sizes that are asked at most; sizes beyond a constant that are asked in all ways, and at one without grad; ratios.
CALLS, IN_ALL_WAYS, EXACTLY, RATIOS = 80, 12, 24, 32
#: Further ratios, which are compared with the reference: a layout that was guessed makes all of a result wrong.
NEAR_RATIOS = 128
#: Calls with unusual values at most.
UNUSUAL = 64
#: Elements of all calls that are compared with the reference, of large tensors with repeated cotangents, and of those
#: for subsets of gradients: each takes some seconds at most. A simulated GPU takes longer, so that there are fewer.
NEAR, REPEATED_IN_LARGE, SUBSETS = 2**25, 2**26, 2**29
SIMULATED_PART, SIMULATED_SUBSETS = 16, 2**22
#: The dtypes that are asked everything.
_FULLY = ("float32", "bfloat16")


def check(subject: Subject) -> dict[str, Any]:
    """Sizes around each constant, symbol by symbol."""
    if subject.files is None:
        raise NotApplicable("its source is not known: a function of a notebook, or one that is made at run time")
    constants = constants_of(subject.files)
    if not constants:
        raise NotApplicable("there is no integer in its source that may be a size")
    operator, tally = subject.operator, Tally(subject)
    fully, beyond, asked, large = _plain(subject, constants)
    for scenario in (*asked[:CALLS], *large):
        _run(tally, scenario)
    for scenario in _unusual(operator, beyond):
        tally.run(scenario)
    for scenario in _compared(subject, harvested.tails(operator, constants), large if fully else ()):
        run_near(tally, scenario)
    if fully:
        _in_other_ways(tally, constants, beyond, large)
    figures = {**tally.figures(), "constants": constants}
    left_out = [scenario.name for scenario in asked[CALLS:]]
    return {**figures, "left_out": left_out} if left_out else figures


def _run(tally: Tally, scenario: Scenario) -> None:
    """Judge a call by its expected results, or by the reference where these take too long."""
    if harvested.is_long(tally.subject.operator, scenario):
        run_near(tally, scenario)
    else:
        tally.run(scenario)


def _plain(
    subject: Subject, constants: Sequence[int]
) -> tuple[bool, list[tuple[str, int]], list[Scenario], list[Scenario]]:
    """Whether everything is asked; the sizes beyond constants; the calls with small tensors, and with large ones."""
    operator, fully = subject.operator, subject.dtype_name in _FULLY
    beyond = list(harvested.beyond(operator, constants))
    asked = harvested.small(operator, harvested.sizes_around(operator, constants) if fully else beyond)
    around = [*harvested.themselves(operator, constants), *beyond]
    large = harvested.large(operator, harvested.tails(operator, constants), around)
    return fully, beyond, list(asked), list(large)


def _in_other_ways(
    tally: Tally, constants: Sequence[int], beyond: Sequence[tuple[str, int]], large: Sequence[Scenario]
) -> None:
    """Subsets of gradients, repeated cotangents, equal rows, no grad and ratios."""
    operator = tally.subject.operator
    for scenario in _spread(harvested.small(operator, beyond), IN_ALL_WAYS):
        for wanted in proper_subsets(operator):
            tally.run(replace(scenario, wanted=wanted))
        for repeated in _repeated(operator, scenario):
            tally.run(repeated)
        tally.run(replace(scenario, layouts=_equal_rows(operator)))
        _without_grad(tally, scenario)
    for scenario in _spread(harvested.exactly(operator, constants), EXACTLY):
        _without_grad(tally, scenario)
    for scenario, subsets in _subsets_of_large(tally.subject, constants):
        run_like_whole(tally, scenario, subsets)
    for scenario in large:  # in ways that have the same expected results, which take long
        for mode in WITHOUT_GRAD:
            hold_without_grad(tally, scenario, mode, near=harvested.is_long(operator, scenario))
    ratios = harvested.ratios(operator, constants)
    for scenario in islice(ratios, RATIOS):
        tally.run(scenario)
    for scenario in islice(chain(ratios, harvested.ratios_of_lengths(operator, constants)), NEAR_RATIOS):
        run_near(tally, scenario)


def _unusual(operator: Operator, beyond: Sequence[tuple[str, int]]) -> list[Scenario]:
    """Each family of values with each of the sizes; of too many pairs some, always the same."""
    pairs = list(product(harvested.small(operator, beyond), operator.families))
    chosen = pairs if len(pairs) <= UNUSUAL else Random(0).sample(pairs, UNUSUAL)
    return [replace(scenario, values=family.name) for scenario, family in chosen]


def _compared(subject: Subject, tails: Sequence[tuple[str, int]], large: Sequence[Scenario]) -> list[Scenario]:
    """Values with something in common beyond each constant, and repeated cotangents of large tensors."""
    operator = subject.operator
    at = (*harvested.small(operator, tails), *harvested.large(operator, tails))
    families = (*operator.of_one_sign(), *operator.of_one_tensor())
    common = [replace(scenario, values=family.name) for scenario, family in product(at, families)]
    repeated = [each for scenario in large for each in _repeated(operator, scenario)]
    rooms = ((common, NEAR), (repeated, REPEATED_IN_LARGE))
    return [each for asked, room in rooms for each in harvested.affordable(operator, asked, _room(subject, room))]


def _subsets_of_large(subject: Subject, constants: Sequence[int]) -> Iterator[tuple[Scenario, list[tuple[str, ...]]]]:
    """Large sizes that are no multiple of small blocks, and every proper subset of gradients; of too many some."""
    operator = subject.operator
    at = list(harvested.large(operator, harvested.tails(operator, constants)))
    asked = [replace(scenario, wanted=wanted) for scenario in at for wanted in proper_subsets(operator)]
    room = SIMULATED_SUBSETS if subject.device in SIMULATED else SUBSETS
    chosen = harvested.affordable(operator, asked, room)
    for scenario in at:
        subsets = [each.wanted for each in chosen if each.wanted is not None and each.sizes == scenario.sizes]
        if subsets:
            yield scenario, subsets


def _room(subject: Subject, elements: int) -> int:
    return elements // (SIMULATED_PART if subject.device in SIMULATED else 1)


def foreseen(subject: Subject) -> Iterator[Scenario]:
    """The calls with grad; those without have the values of one of them, or equal rows."""
    constants = constants_of(subject.files or ())
    operator = subject.operator
    fully, beyond, asked, large = _plain(subject, constants)
    yield from asked[:CALLS]
    yield from (scenario for scenario in large if not harvested.is_long(operator, scenario))
    yield from _unusual(operator, beyond)
    if fully:
        yield from _spread(harvested.small(operator, beyond), IN_ALL_WAYS)
        yield from islice(harvested.ratios(operator, constants), RATIOS)


def _repeated(operator: Operator, scenario: Scenario) -> Iterator[Scenario]:
    """The call with each kind of cotangent that repeats numbers."""
    outputs = operator.real_outputs
    for kind in REPEATED:
        if any(kind in kinds_of(arg) for arg in outputs):
            yield replace(scenario, cotangents=tuple((arg.name, kind) for arg in outputs))


def _without_grad(tally: Tally, scenario: Scenario) -> None:
    """The call with its own rows and with equal rows, in each of the modes: both have the same expected results."""
    for layouts, mode in product(((), _equal_rows(tally.subject.operator)), WITHOUT_GRAD):
        hold_without_grad(tally, replace(scenario, layouts=layouts), mode)


def _spread(found: Iterable[Scenario], count: int) -> list[Scenario]:
    """At most so many of them, from all parts of the list: of every symbol, and of small and large constants."""
    every = list(found)
    return every if len(every) <= count else [every[k * len(every) // count] for k in range(count)]


def _equal_rows(operator: Operator) -> tuple[tuple[str, str], ...]:
    """Every input that has rows has equal ones: rows of the batch, or what the first output has in its place."""
    of_output = operator.outputs[0].shape[:1]
    rows = [arg for arg in operator.inputs if arg.row_dim is not None] or [
        arg for arg in operator.inputs if arg.shape and arg.shape[:1] == of_output and not arg.offsets
    ]
    return tuple((arg.name, "repeated") for arg in rows)


PROPERTY = Property(
    "harvested-sizes",
    "right at sizes around the integers in its source",
    check,
    level=VALUES,
    outside=True,
    foreseen=foreseen,
)
