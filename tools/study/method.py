"""Measure how often the harness is wrong, and draw the tables of docs/method.md from the record.

    python -m tools.study.method -o results/cpu/method.json                      # minutes; writes after each operator
    python -m tools.study.method --operator mlp --seeds 1 -o reports/method.json # one operator, quickly
    python -m tools.study.method --draw results/cpu/method.json                  # tables into docs/method.md
    python -m tools.study.plot results/cpu/method.json                           # figures into docs/method/

Each seed gives some calls of each operator in each dtype: the scenarios of `ordinary()` of every form with other seeds,
one call of small random sizes and one of larger ones. All judges get the same tensors. A fault counts only in calls
where its result differs from the honest function's: with one row in the batch, a gradient of only the first row is
right. An operator that the record already has is measured anew.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from harness.discovery import operator
from harness.errors import Failure
from harness.judging.compare import compare
from harness.judging.scenario import Scenario, realise
from harness.judging.scenarios import at_edges, ordinary
from harness.judging.subject import Subject
from harness.running import environment
from spec.contract import DTYPES, Operator
from tools.study import candidates, tables
from tools.study.candidates import CONTROLS, FAULTS, GRADED, OPERATORS, name_of
from tools.study.judges import JUDGES, Measure, measure, named
from tools.study.products import sums_of
from tools.study.tables import LARGE, POOLED, SMALL

DOCUMENT = Path("docs/method.md")
#: Seeds of each operator, so that all take about as long.
SEEDS = {"lltm": 40, "mlp": 40, "layer_norm": 24, "lltm_sequence": 12}
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


def study(of: str, seeds: int, jobs: int = 1, dtypes: tuple[torch.dtype, ...] = DTYPES) -> dict[str, Any]:
    """What the record has of one operator. With several jobs, dtypes run in parallel."""
    with ProcessPoolExecutor(jobs, initializer=torch.set_num_threads, initargs=(1,)) as workers:
        found = list(workers.map(_of_dtype, [of] * len(dtypes), [seeds] * len(dtypes), dtypes))
    of_dtype = {name_of(dtype): part for dtype, part in zip(dtypes, found, strict=True)}
    edges = [part["at_edges"] for part in found]
    return {
        "environment": environment.describe(),
        "seeds": seeds,
        "cpu_seconds": round(sum(part["cpu_seconds"] for part in found), 1),
        "pooled_scenarios": len(pool(operator(of))),
        "controls": list(dict.fromkeys(name for part in found for name in part["counts"][CONTROLS])),
        "faults": [fault.name for fault in candidates.value_faults(of)],
        "left_out": candidates.LEFT_OUT[of],
        "only_in": only_in(of),
        "counts": {name: part["counts"] for name, part in of_dtype.items()},
        "used_by_controls": {name: part["used"] for name, part in of_dtype.items()},
        "at_edges": {
            "calls": sum(part["calls"] for part in edges),
            "alarms": [sum(alarms) for alarms in zip(*(part["alarms"] for part in edges), strict=True)],
            "caught": {name: seen for part in edges for name, seen in part["caught"].items()},
        },
        "longest_sums": longest_sums(of),
        "block_shares": block_shares(of, seeds),
    }


def _of_dtype(of: str, seeds: int, dtype: torch.dtype) -> dict[str, Any]:
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


def only_in(of: str) -> dict[str, list[str]]:
    """The dtypes of the faults that are not wrong in all of them."""
    found = {
        fault.name: [name_of(dtype) for dtype in DTYPES if candidates.wrong_in(fault, dtype)]
        for fault in candidates.value_faults(of)
    }
    return {name: dtypes for name, dtypes in found.items() if len(dtypes) < len(DTYPES)}


def longest_sums(of: str) -> dict[str, Any]:
    """The sizes of the benchmark's first case, and k of each result there: see `tools.study.products`."""
    contract = operator(of)
    scenario = ordinary(contract)[-1]
    sums = sums_of(contract, realise(contract, scenario, torch.float64))
    return {"sizes": dict(scenario.sizes), "k": {name: found.k for name, found in sums.items()}}


def block_shares(of: str, seeds: int) -> dict[str, dict[str, float]]:
    """Each block's mean share of <y, y> in gradients that consist of named blocks, over random larger calls."""
    shares: dict[str, dict[str, float]] = {}
    for seed in range(seeds):
        _, form, scenario = scenarios(of, seed)[1]
        if not any(arg.blocks for arg in form.inputs):
            break
        should = measure(form, scenario, torch.float32).envelopes
        for arg in form.inputs:
            for block, begin, end in arg.blocks_of(0, dict(scenario.sizes)):
                y = should[f"gradient of {arg.name}"].exact
                share = float(y[begin:end].square().sum() / y.square().sum())
                of_arg = shares.setdefault(arg.name, {})
                of_arg[block] = of_arg.get(block, 0.0) + share / seeds
    return {name: {block: round(share, 4) for block, share in of.items()} for name, of in shares.items()}


def started() -> dict[str, Any]:
    """A record without an operator."""
    judges = {judge.name: judge.rule for judge in JUDGES}
    return {"faults_every": FAULTS_EVERY, "graded_every": GRADED_EVERY, "judges": judges, "operators": {}}


def written(record: dict[str, Any]) -> str:
    """The record as JSON, lists of numbers and counts on one line."""
    text = json.dumps(record, indent=1)
    text = re.sub(r"\[([^\[\]{}\"]*)\]", lambda m: "[" + " ".join(m[1].split()) + "]", text)
    return re.sub(r'\{\s*("calls": \d+,)\s*("rejected": \[[^\]]*\])\s*\}', r"{\1 \2}", text) + "\n"


def _study(options: argparse.Namespace) -> None:
    """Measure the operators one after another, and write the record after each."""
    path: Path = options.output
    record = json.loads(path.read_text()) if path.exists() else started()
    if record.keys() != started().keys() or record["judges"] != started()["judges"]:
        record = started()
    path.parent.mkdir(parents=True, exist_ok=True)
    for of in options.operator:
        part = study(of, options.seeds or SEEDS[of], options.jobs)
        found = {**record["operators"], of: part}
        record["operators"] = {name: found[name] for name in OPERATORS if name in found}
        path.write_text(written(record))
        print(f"{of}: {part['cpu_seconds']:.0f} s of one core", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--operator", nargs="+", choices=OPERATORS, default=list(OPERATORS))
    parser.add_argument("--seeds", type=int, help=f"of each operator; default: {SEEDS}")
    parser.add_argument("--jobs", type=int, default=1, help="number of dtypes in parallel, one core each")
    parser.add_argument("-o", "--output", type=Path, help="write the record of a new study here, or add to it")
    parser.add_argument("--draw", type=Path, metavar="RECORD", help="draw the tables of docs/method.md from a record")
    options = parser.parse_args()
    if options.output:
        torch.set_num_threads(1)
        _study(options)
    if options.draw:
        DOCUMENT.write_text(tables.insert(json.loads(options.draw.read_text()), DOCUMENT.read_text()))


if __name__ == "__main__":
    main()
