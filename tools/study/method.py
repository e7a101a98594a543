"""Measure how often the harness is wrong, and draw the tables of docs/method.md from the record.

    python -m tools.study.method --seeds 100 -o results/cpu/method.json      # minutes; one thread
    python -m tools.study.method --draw results/cpu/method.json             # tables into docs/method.md
    python -m tools.study.plot results/cpu/method.json                      # figures into docs/method/

Each seed gives ten calls in each dtype: the scenarios of `ordinary()` with other seeds, one call of small random sizes
and one of sizes like the tutorial's. All judges get the same tensors. A fault counts only in calls where its result
differs from the honest cell's: with one row in the batch, a gradient of only the first row is right.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import re
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from harness.discovery import operator
from harness.judging.compare import compare
from harness.judging.scenario import Scenario
from harness.judging.scenarios import at_edges, ordinary
from harness.judging.subject import Subject
from harness.rendering import tables
from harness.running import environment
from spec.contract import DTYPES
from tests.zoo import registry as zoo
from tests.zoo.honest.lltm import Cell
from tools.study.judges import JUDGES, Measure, measure, named

DOCUMENT = Path("docs/method.md")
OPERATOR = operator("lltm")

#: Faults of tests/zoo that values cannot show, or only adversarial ones: never counted among the detections.
LEFT_OUT = {
    "MaskTimesExp": "wrong only beyond the overflow of exp",
    "MaskTimesExpHalf": "wrong only beyond the overflow of exp in float16",
    "SlopeZeroAtZero": "wrong only at pre-activations of exactly 0",
    "SlopeZeroNearZero": "wrong only at tiny negative pre-activations",
    "BiasGradientKeepsDim": "a wrong shape that autograd sums away: the values are right",
    "BiasGradientNotSummed": "a wrong shape that autograd sums away: the values are right",
    "TooFewGradients": "raises; there are no values",
}
AT_EDGES = ("MaskTimesExp", "MaskTimesExpHalf", "SlopeZeroAtZero", "SlopeZeroNearZero")
#: Faults of precision, which are right in another dtype.
ONLY_IN = {"DoubleThroughFloat": torch.float64}
GRADES = (0.005, 0.01, 0.02, 0.05, 0.1)
GATES = ("input", "output", "candidate")
#: Faults run for one seed in this many: those of tests/zoo are many, and most of them are gross.
FAULTS_EVERY, GRADED_EVERY = 20, 5
SMALL, LARGE, POOLED = SIZES = ("small", "tutorial-like", "pooled")

_SEED_STEP = 1_009  # larger than the differences of the scenarios' seeds


class Graded(Cell):
    """The gradient of one gate is multiplied by 1 + s."""

    def __init__(self, gate: str, s: float) -> None:
        self.gate, self.factor = gate, 1 + s

    def _scaled(self, gate: str, gradient: Tensor) -> Tensor:
        return self.factor * gradient if self.gate == gate else gradient

    def d_input_gate(self, d_new_cell: Tensor, candidate: Tensor, input_gate: Tensor) -> Tensor:
        return self._scaled("input", super().d_input_gate(d_new_cell, candidate, input_gate))

    def d_output_gate(self, g_h: Tensor, tanh_cell: Tensor, output_gate: Tensor) -> Tensor:
        return self._scaled("output", super().d_output_gate(g_h, tanh_cell, output_gate))

    def d_candidate(self, d_new_cell: Tensor, input_gate: Tensor, slope: Tensor) -> Tensor:
        return self._scaled("candidate", super().d_candidate(d_new_cell, input_gate, slope))


# Running


def candidates(dtype: torch.dtype, seed: int) -> Iterator[tuple[str, str, Callable[..., Any]]]:
    """(group, member, function): the controls and, for some seeds only, graded faults and the faults of tests/zoo."""
    for control in zoo.controls("lltm"):
        yield "controls", control.name, control.function
    for s in GRADES if seed % GRADED_EVERY == 0 else ():
        for gate in GATES:
            yield "graded", f"{s:g} {gate}", Graded(gate, s)
    if seed % FAULTS_EVERY == 0:
        for fault in value_faults():
            if ONLY_IN.get(fault.name, dtype) == dtype:
                yield "faults", fault.name, fault.function


def value_faults() -> list[zoo.Fault]:
    """The faults that return wrong values for ordinary inputs."""
    of_values = [f for f in zoo.faults("lltm") if f.kind in ("math", "gradient")]
    return [f for f in of_values if f.caught_by in ("forward-parity", "vjp-parity") and f.name not in LEFT_OUT]


def scenarios(seed: int) -> list[tuple[str, Scenario]]:
    """(size, scenario): two calls of random sizes, then `ordinary()` with other seeds, which are also pooled."""
    pick = random.Random(seed)
    small = (("batch", 1, 9), ("input_features", 1, 9), ("state_size", 1, 9))
    large = (("batch", 8, 32), ("input_features", 16, 64), ("state_size", 32, 128))
    found = [
        (size, Scenario(tuple((symbol, pick.randint(low, high)) for symbol, low, high in ranges), "random", seed))
        for size, ranges in ((SMALL, small), (LARGE, large))
    ]
    for scenario in ordinary(OPERATOR):
        size = LARGE if scenario.name == "tutorial" else SMALL
        found.append((size, replace(scenario, seed=scenario.seed + _SEED_STEP * (seed + 1))))
    return found


def call(function: Callable[..., Any], scenario: Scenario, dtype: torch.dtype) -> dict[str, Tensor]:
    """Outputs and gradients of one call, made as in the harness."""
    subject = Subject(OPERATOR, "study", "cpu", dtype, function)
    tensors = subject.realise(scenario)
    outputs = subject.outputs(tensors, scenario)
    return named(OPERATOR, outputs, subject.gradients(tensors, outputs, scenario))


class Counts:
    """The number of rejected calls of each judge, and of calls, by dtype, group, member and size."""

    def __init__(self) -> None:
        self.record: dict[str, Any] = {}

    def add(self, dtype: str, group: str, member: str, size: str, rejected: list[bool]) -> None:
        sizes = self.record.setdefault(dtype, {}).setdefault(group, {}).setdefault(member, {})
        slot = sizes.setdefault(size, {"calls": 0, "rejected": [0] * len(JUDGES)})
        slot["calls"] += 1
        slot["rejected"] = [before + now for before, now in zip(slot["rejected"], rejected, strict=True)]


def study(seeds: int, jobs: int = 1) -> dict[str, Any]:
    """The whole record. With several jobs, the dtypes run in parallel."""
    with ProcessPoolExecutor(jobs, initializer=torch.set_num_threads, initargs=(1,)) as pool:
        found = list(pool.map(_of_dtype, [seeds] * len(DTYPES), DTYPES))
        rest = pool.submit(_timed, edges), pool.submit(_timed, gate_shares, seeds)
        (at_edges, edge_seconds), (shares, share_seconds) = (future.result() for future in rest)
    names = [_name(dtype) for dtype in DTYPES]
    return {
        "environment": environment.describe(),
        "operator": OPERATOR.name,
        "seeds": seeds,
        "faults_every": FAULTS_EVERY,
        "graded_every": GRADED_EVERY,
        "cpu_seconds": round(sum(seconds for _, seconds in found) + edge_seconds + share_seconds, 1),
        "judges": {judge.name: judge.rule for judge in JUDGES},
        "pooled_scenarios": len(ordinary(OPERATOR)),
        "controls": [control.name for control in zoo.controls("lltm")],
        "faults": [fault.name for fault in value_faults()],
        "left_out": LEFT_OUT,
        "only_in": {name: _name(dtype) for name, dtype in ONLY_IN.items()},
        "counts": {name: counts for name, ((counts, _), _) in zip(names, found, strict=True)},
        "used_by_controls": {name: used for name, ((_, used), _) in zip(names, found, strict=True)},
        "at_edges": at_edges,
        "gate_shares": shares,
    }


def _timed(function: Callable[..., Any], *arguments: Any) -> tuple[Any, float]:
    """The result of the function, and its processor time."""
    start = time.process_time()
    return function(*arguments), time.process_time() - start


def _of_dtype(seeds: int, dtype: torch.dtype) -> tuple[tuple[dict[str, Any], dict[str, float]], float]:
    """The counts and the used allowances of one dtype, and the processor time that they took."""

    def run() -> tuple[dict[str, Any], dict[str, float]]:
        counts, used = Counts(), dict[str, float]()
        for seed in range(seeds):
            _one_seed(seed, dtype, counts, used)
        return counts.record[_name(dtype)], used

    return _timed(run)


def _one_seed(seed: int, dtype: torch.dtype, counts: Counts, used: dict[str, float]) -> None:
    drawn = [(size, scenario, measure(OPERATOR, scenario, dtype)) for size, scenario in scenarios(seed)]
    pooled = len(drawn) - len(ordinary(OPERATOR))
    honest = [call(Cell(), scenario, dtype) for _, scenario, _ in drawn]
    for group, member, function in candidates(dtype, seed):
        any_rejected, lies = [False] * len(JUDGES), False
        for index, (size, scenario, should) in enumerate(drawn):
            got = call(function, scenario, dtype)
            if group != "controls" and all(torch.equal(got[name], value) for name, value in honest[index].items()):
                continue
            rejected = [judge.rejects(should, got) for judge in JUDGES]
            counts.add(_name(dtype), group, member, size, rejected)
            if index >= pooled:
                lies = True
                any_rejected = [before or now for before, now in zip(any_rejected, rejected, strict=True)]
            if group == "controls":
                _note_used(should, got, used)
        if lies:
            counts.add(_name(dtype), group, member, POOLED, any_rejected)


def _note_used(should: Measure, got: dict[str, Tensor], used: dict[str, float]) -> None:
    """Record the largest share of each statistic's allowance that a right implementation used."""
    for name, value in got.items():
        for statistic in compare(value, should.envelopes[name]).statistics:
            used[statistic.name] = max(used.get(statistic.name, 0.0), round(statistic.used, 3))


def edges() -> dict[str, Any]:
    """The value families: false alarms over the controls, and which of the faults at such values are caught."""
    faults = [fault for fault in zoo.faults("lltm") if fault.name in AT_EDGES]
    calls, alarms = 0, [0] * len(JUDGES)
    caught = {fault.name: [False] * len(JUDGES) for fault in faults}
    for dtype in DTYPES:
        for scenario in at_edges(OPERATOR):
            should = measure(OPERATOR, scenario, dtype)
            for control in zoo.controls("lltm"):
                got = call(control.function, scenario, dtype)
                calls += 1
                alarms = [n + judge.rejects(should, got) for n, judge in zip(alarms, JUDGES, strict=True)]
            for fault in faults:
                if fault.dtype == dtype:
                    got = call(fault.function, scenario, dtype)
                    seen = caught[fault.name]
                    caught[fault.name] = [
                        b or judge.rejects(should, got) for b, judge in zip(seen, JUDGES, strict=True)
                    ]
    return {"calls": calls, "alarms": alarms, "caught": caught}


def gate_shares(seeds: int) -> dict[str, dict[str, float]]:
    """Each gate's mean share of <y, y> in gradients that contain gates, over random calls of the tutorial's size."""
    shares: dict[str, dict[str, float]] = {}
    for seed in range(seeds):
        _, scenario = scenarios(seed)[1]
        should = measure(OPERATOR, scenario, torch.float32).envelopes
        for arg in OPERATOR.inputs:
            for block, begin, end in arg.blocks_of(0, dict(scenario.sizes)):
                y = should[f"gradient of {arg.name}"].exact
                share = float(y[begin:end].square().sum() / y.square().sum())
                of_arg = shares.setdefault(arg.name, {})
                of_arg[block] = of_arg.get(block, 0.0) + share / seeds
    return {name: {block: round(share, 4) for block, share in of.items()} for name, of in shares.items()}


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


# Reading the record


def interval(k: int, n: int) -> tuple[float, float]:
    """Wilson's 95% interval for k of n."""
    if n == 0:
        return 0.0, 1.0
    z, p = 1.959964, k / n
    centre, half = p + z * z / (2 * n), z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    low, high = ((centre + sign * half) / (1 + z * z / n) for sign in (-1, 1))
    return (0.0 if k == 0 else low), (1.0 if k == n else high)


def tally(
    record: dict[str, Any], dtype: str, group: str, judge: str, sizes: Iterable[str], only: str = ""
) -> list[int]:
    """[rejected, calls] over the members of a group whose names begin with `only`."""
    index, total = list(record["judges"]).index(judge), [0, 0]
    for member, by_size in record["counts"][dtype].get(group, {}).items():
        for size in sizes:
            if member.startswith(only) and size in by_size:
                total[0] += by_size[size]["rejected"][index]
                total[1] += by_size[size]["calls"]
    return total


def percent(k: int, n: int) -> str:
    """`12% (9-16)`: the rate and its interval."""
    if n == 0:
        return "-"
    low, high = interval(k, n)
    return f"{_digits(k / n)}% ({_digits(low)}-{_digits(high)})"


def _digits(rate: float) -> str:
    value = 100 * rate
    if value in (0, 100) or 9.95 <= value < 99:
        return f"{value:.0f}"
    return f"{min(value, 99.9):.1f}"  # 100 means all


def _table(header: list[str], rows: list[list[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def drawn(record: dict[str, Any]) -> dict[str, str]:
    """The tables of docs/method.md by the names of their markers."""
    dtypes, judges = list(record["counts"]), list(record["judges"])
    single, pooled = (SMALL, LARGE), (POOLED,)

    def by_judge(group: str, sizes: Iterable[str], only: str = "") -> list[list[str]]:
        return [[j, *(percent(*tally(record, d, group, j, sizes, only)) for d in dtypes)] for j in judges]

    def calls(group: str, sizes: Iterable[str], only: str = "") -> str:
        counts = [tally(record, d, group, judges[0], sizes, only)[1] for d in dtypes]
        return str(counts[0]) if len(set(counts)) == 1 else " / ".join(map(str, counts))

    grades = sorted({float(name.split()[0]) for name in record["counts"][dtypes[0]]["graded"]})
    machine = record["environment"]
    found = {
        "study": (
            f"{record['seeds']} seeds, {len(record['controls'])} controls, {len(record['faults'])} faults (one seed in "
            f"{record['faults_every']}; of an error in one gate, one in {record['graded_every']}), "
            f"{len(record['judges'])} judges; torch {machine['torch']}, {machine['cpu']}, "
            f"{record['cpu_seconds']:.0f} s of one core.\n"
        ),
        "judges": _table(["judge", "rule"], [[name, rule] for name, rule in record["judges"].items()]),
    }
    for group, title in (("controls", "false alarms"), ("faults", "detections")):
        for sizes, kind in ((single, "calls"), (pooled, "pooled")):
            head = f"{title} in {calls(group, sizes)} {'calls' if kind == 'calls' else 'pools of calls'}"
            found[f"{title}, {kind}"] = _table([head, *dtypes], by_judge(group, sizes))
    rows = []
    for dtype in dtypes:
        for judge in judges:
            row = [dtype, judge]
            rows += [[*row, *(percent(*tally(record, dtype, "graded", judge, pooled, f"{s:g} ")) for s in grades)]]
    found["graded, pooled"] = _table(["dtype", "judge", *(f"{100 * s:g}%" for s in grades)], rows)
    rows = []
    for dtype in dtypes:
        for size in SIZES:
            cells = (percent(*tally(record, dtype, "graded", "ours", (size,), f"{s:g} ")) for s in grades)
            rows.append([dtype, size, *cells])
    found["graded, ours"] = _table(["dtype", "sizes", *(f"{100 * s:g}%" for s in grades)], rows)
    names = list(dict.fromkeys(name for d in dtypes for name in record["used_by_controls"][d]))
    used = [[d, *(f"{record['used_by_controls'][d][name]:.2f}" for name in names)] for d in dtypes]
    found["used"] = _table(["dtype", *names], used)
    found["missed"] = _missed(record)
    blocks = list(next(iter(record["gate_shares"].values())))
    rows = [
        [f"gradient of {name}", *(f"{_digits(of[b])}%" for b in blocks)] for name, of in record["gate_shares"].items()
    ]
    found["shares"] = _table(["", *blocks], rows)
    at_edges = record["at_edges"]
    rows = [[j, percent(k, at_edges["calls"])] for j, k in zip(judges, at_edges["alarms"], strict=True)]
    for row, caught in zip(rows, zip(*at_edges["caught"].values(), strict=True), strict=True):
        row += ["caught" if one else "-" for one in caught]
    found["edges"] = _table(["judge", f"false alarms in {at_edges['calls']} calls", *at_edges["caught"]], rows)
    return found


def _missed(record: dict[str, Any]) -> str:
    """The faults of tests/zoo that our judge did not always catch over a pool."""
    rows = []
    for dtype in record["counts"]:
        for fault, by_size in record["counts"][dtype]["faults"].items():
            k, n = (by_size[POOLED]["rejected"][0], by_size[POOLED]["calls"]) if POOLED in by_size else (0, 0)
            if k < n:
                rows.append([fault, dtype, f"{k} of {n}"])
    return _table(["fault", "dtype", "pools that caught it"], rows) if rows else "None.\n"


def insert(record: dict[str, Any], document: str) -> str:
    """`document` with every table redrawn."""
    for name, text in drawn(record).items():
        document = tables.insert(text, document, name)
    return document


def written(record: dict[str, Any]) -> str:
    """The record as JSON, lists of numbers on one line."""
    text = json.dumps(record, indent=1)
    return re.sub(r"\[([^\[\]{}\"]*)\]", lambda m: "[" + " ".join(m[1].split()) + "]", text) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--jobs", type=int, default=1, help="number of dtypes in parallel, one core each")
    parser.add_argument("-o", "--output", type=Path, help="write the record of a new study here")
    parser.add_argument("--draw", type=Path, metavar="RECORD", help="draw the tables of docs/method.md from a record")
    options = parser.parse_args()
    if options.output:
        torch.set_num_threads(1)
        options.output.parent.mkdir(parents=True, exist_ok=True)
        options.output.write_text(written(study(options.seeds, options.jobs)))
    if options.draw:
        DOCUMENT.write_text(insert(json.loads(options.draw.read_text()), DOCUMENT.read_text()))


if __name__ == "__main__":
    main()
