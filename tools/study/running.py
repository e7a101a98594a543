"""Call the candidates of an operator and count what each judge rejects.

Each seed gives some calls of each operator in each dtype: the scenarios of `ordinary()` of every form with other seeds,
one call of small random sizes and one of larger ones. All judges get the same tensors. A fault counts only in calls
where its result differs from the honest function's: with one row in the batch, a gradient of only the first row is
right.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from harness.discovery import operator
from harness.errors import Failure
from harness.judging.compare import compare
from harness.judging.scenario import Scenario
from harness.judging.scenarios import at_edges, ordinary
from harness.judging.subject import Subject
from spec.contract import Operator
from tools.study import candidates
from tools.study.candidates import CONTROLS, FAULTS, GRADED
from tools.study.judges import JUDGES, Measure, measure, named
from tools.study.tables import LARGE, POOLED, SMALL

#: Faults run for one seed in this many: those of tests/zoo are many, and most of them are gross.
FAULTS_EVERY, GRADED_EVERY = 8, 4

_SEED_STEP = 1_009  # larger than the differences of the scenarios' seeds
#: Random sizes: (small, large), each from least to most. Rows of one element have no variance.
_RANGES = {
    "batch": ((1, 9), (8, 32)),
    "features": ((2, 9), (32, 256)),
    "hidden_size": ((1, 9), (32, 128)),
    "input_features": ((1, 9), (16, 64)),
    "output_size": ((1, 9), (4, 32)),
    "state_size": ((1, 9), (32, 128)),
    "steps": ((1, 5), (4, 12)),
}


def scenarios(of: str, seed: int) -> list[tuple[str, Operator, Scenario]]:
    """(size, form, scenario): two calls of random sizes, then `ordinary()` with other seeds, which are also pooled."""
    contract, pick = operator(of), random.Random(seed)
    found = []
    for which, size in enumerate((SMALL, LARGE)):
        sizes = tuple((symbol, pick.randint(*_RANGES[symbol][which])) for symbol in contract.symbols())
        found.append((size, contract, Scenario(sizes, "random", seed)))
    for form, scenario in pool(contract):
        size = SMALL if "small" in form.case(scenario.name).tags else LARGE
        found.append((size, form, replace(scenario, seed=scenario.seed + _SEED_STEP * (seed + 1))))
    return found


def pool(contract: Operator) -> list[tuple[Operator, Scenario]]:
    """The ordinary scenarios of every form."""
    return [(form, scenario) for form in contract.every_form() for scenario in ordinary(form)]


def call(subject: Subject, form: Operator, scenario: Scenario) -> dict[str, Tensor]:
    """Outputs and gradients of one call, made as in the harness."""
    subject = subject.in_form(form)
    tensors = subject.realise(scenario)
    outputs = subject.outputs(tensors, scenario)
    return named(form, outputs, subject.gradients(tensors, outputs, scenario))


class Counts:
    """The number of rejected calls of each judge, and of calls, by group, member and size."""

    def __init__(self) -> None:
        self.record: dict[str, Any] = {}

    def add(self, group: str, member: str, size: str, rejected: list[bool]) -> None:
        sizes = self.record.setdefault(group, {}).setdefault(member, {})
        slot = sizes.setdefault(size, {"calls": 0, "rejected": [0] * len(JUDGES)})
        slot["calls"] += 1
        slot["rejected"] = [before + now for before, now in zip(slot["rejected"], rejected, strict=True)]


def of_dtype(of: str, seeds: int, dtype: torch.dtype) -> dict[str, Any]:
    """Counts, used allowances and what happens at edges, of one dtype."""
    start, counts, used = time.process_time(), Counts(), dict[str, float]()
    for seed in range(seeds):
        _one_seed(of, seed, dtype, counts, used)
    edges = _at_edges(of, dtype)
    spent = time.process_time() - start
    return {"counts": counts.record, "used": used, "at_edges": edges, "cpu_seconds": spent}


def members(of: str, dtype: torch.dtype, seed: int) -> Iterator[tuple[str, Subject]]:
    """(group, candidate): the controls and, for some seeds only, graded errors and the faults of tests/zoo."""
    groups: list[tuple[str, Iterable[Subject]]] = [(CONTROLS, candidates.controls(of, dtype))]
    groups += [(GRADED, candidates.graded(of, dtype))] if seed % GRADED_EVERY == 0 else []
    groups += [(FAULTS, candidates.faults(of, dtype))] if seed % FAULTS_EVERY == 0 else []
    for group, subjects in groups:
        for subject in subjects:
            yield group, subject


def _one_seed(of: str, seed: int, dtype: torch.dtype, counts: Counts, used: dict[str, float]) -> None:
    drawn = [(size, form, scenario, measure(form, scenario, dtype)) for size, form, scenario in scenarios(of, seed)]
    pooled = len(drawn) - len(pool(operator(of)))
    honest = candidates.honest(of, dtype)
    right = [call(honest, form, scenario) for _, form, scenario, _ in drawn]
    for group, subject in members(of, dtype, seed):
        any_rejected, counted = [False] * len(JUDGES), False
        for index, (size, form, scenario, should) in enumerate(drawn):
            try:
                got = call(subject, form, scenario)
            except Failure:  # there are no values to judge
                if group == CONTROLS:
                    raise
                continue
            if group != CONTROLS and all(torch.equal(got[name], value) for name, value in right[index].items()):
                continue
            rejected = [judge.rejects(should, got) for judge in JUDGES]
            counts.add(group, subject.backend, size, rejected)
            if index >= pooled:
                counted = True
                any_rejected = [before or now for before, now in zip(any_rejected, rejected, strict=True)]
            if group == CONTROLS:
                _note_used(should, got, used)
        if counted:
            counts.add(group, subject.backend, POOLED, any_rejected)


def _note_used(should: Measure, got: dict[str, Tensor], used: dict[str, float]) -> None:
    """Record the largest share of each statistic's allowance that a right implementation used."""
    for name, value in got.items():
        for statistic in compare(value, should.envelopes[name]).statistics:
            used[statistic.name] = max(used.get(statistic.name, 0.0), round(statistic.used, 3))


def _at_edges(of: str, dtype: torch.dtype) -> dict[str, Any]:
    """The value families: false alarms over the controls, and which of the faults at such values are caught."""
    faults, calls, alarms = candidates.edge_faults(of, dtype), 0, [0] * len(JUDGES)
    caught = {fault.backend: [False] * len(JUDGES) for fault in faults}
    for form in operator(of).every_form():
        for scenario in at_edges(form):
            should = measure(form, scenario, dtype)
            for control in candidates.controls(of, dtype):
                got = call(control, form, scenario)
                calls += 1
                alarms = [n + judge.rejects(should, got) for n, judge in zip(alarms, JUDGES, strict=True)]
            for fault in faults:
                got, seen = call(fault, form, scenario), caught[fault.backend]
                caught[fault.backend] = [b or judge.rejects(should, got) for b, judge in zip(seen, JUDGES, strict=True)]
    return {"calls": calls, "alarms": alarms, "caught": caught}
