"""Measure the gate: how often it alarms without a change, and how often it detects a planted slow-down.

    python -m tools.study.gate --sets 10 --trials 5 -o results/cpu/gate-study.json       # minutes; a quiet machine
    python -m tools.study.gate --draw results/cpu/gate-study.json                        # tables into docs/gate.md

Both sides are this tree; a planted slow-down of x% is x% more calls in each block. A set has its own launches,
which all its trials share, and the next set supplies their reruns. The processes of a set start in parallel, and all
but two of them wait: on a GPU a start takes longer than a launch's samples. Other judges get blocks that were timed in
sequence, base first and then head, as is usual for them. The raw samples are recorded, and judged when the tables are
drawn.
"""

from __future__ import annotations

import argparse
import random
import statistics
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from scipy.stats import mannwhitneyu

from harness.bench.record import read, write
from harness.bench.resampling import Launches
from harness.gate import trees
from harness.gate.sampling import Quadruple, SamplingPlan
from harness.gate.statistics import Rule, abba, alarms, estimate
from harness.gate.verdict import VISIBLE
from harness.gate.workers import Worker, workers
from harness.rendering import tables
from harness.running import environment
from tools.study.options import parsed
from tools.study.tables import percent

DOCUMENT = Path("docs/gate.md")
KIND, SCHEMA = "gate-study", 1
PLANTED = (0.0, 0.03, 0.05, 0.10)
#: Calls of a block are a multiple of this, so that each planted share of them is a whole number.
HUNDRED = 100
#: Blocks of each side for the sequential judges.
SEQUENTIAL = 40
RULE = Rule()

Trial = dict[str, Any]


@dataclass(frozen=True)
class Size:
    """How much is sampled: `trials` of each planted slow-down in a set, `pairs` quadruples in a launch, in blocks of
    `seconds`."""

    sets: int
    trials: int
    launches: int = SamplingPlan.launches
    pairs: int = SamplingPlan.pairs
    seconds: float = SamplingPlan.seconds
    planted: tuple[float, ...] = PLANTED


def study(benchmark: dict[str, Any], size: Size, threads: int) -> dict[str, Any]:
    """The record: every sample of every trial."""
    draw, found = random.Random(0), []
    for number in range(size.sets):
        made: list[Trial] = [
            {"set": number, "planted": planted, "trial": trial, "pairs": [], "base": [], "head": []}
            for trial in range(size.trials)
            for planted in size.planted
        ]
        print(f"set {number + 1} of {size.sets}", flush=True)
        with workers([trees.HEAD] * (2 * size.launches), threads) as started:
            with ThreadPoolExecutor(len(started)) as pool:
                list(pool.map(lambda worker: worker.ask("prepare", benchmark=benchmark), started))
            for base, head in zip(started[::2], started[1::2], strict=True):
                calls = max(worker.ask("calls", seconds=size.seconds, multiple=HUNDRED) for worker in (base, head))
                for trial in draw.sample(made, len(made)):
                    _one_launch(trial, base, head, calls, size.pairs, draw)
                    if base is started[0]:
                        _in_sequence(trial, base, head, calls)
        found += made
    settings = {**asdict(size), "benchmark": benchmark}
    described = environment.describe()
    return {"kind": KIND, "schema": SCHEMA, "environment": described, "settings": settings, "trials": found}


def _more(calls: int, planted: float) -> int:
    return calls + round(calls * planted)


def _one_launch(trial: Trial, base: Worker, head: Worker, calls: int, pairs: int, draw: random.Random) -> None:
    def timed(worker: Worker, own: int) -> float:
        return float(worker.ask("time", calls=own)) / calls

    own = []
    for _ in range(pairs):
        more = _more(calls, trial["planted"])
        if draw.random() < 0.5:
            quadruple: Quadruple = (timed(base, calls), timed(head, more), timed(head, more), timed(base, calls))
        else:
            b1, a1, a2, b2 = timed(head, more), timed(base, calls), timed(base, calls), timed(head, more)
            quadruple = (a1, b1, b2, a2)
        own.append(round(abba(*quadruple), 5))
    trial["pairs"].append(own)


def _in_sequence(trial: Trial, base: Worker, head: Worker, calls: int) -> None:
    for side, worker, own in (("base", base, calls), ("head", head, _more(calls, trial["planted"]))):
        times = (worker.ask("time", calls=own) / calls for _ in range(SEQUENTIAL))
        trial[side] = [float(f"{seconds:.5g}") for seconds in times]


# Judging the record


def mean_5(base: list[float], head: list[float]) -> bool:
    """pytest-benchmark --benchmark-compare-fail=mean:5%."""
    return statistics.mean(head) > 1.05 * statistics.mean(base)


def u_test(base: list[float], head: list[float]) -> bool:
    """google/benchmark's compare.py: Mann and Whitney's U test at 5%, counted if head's median is larger."""
    p = float(mannwhitneyu(base, head, alternative="two-sided").pvalue)
    return p < 0.05 and statistics.median(head) > statistics.median(base)


def least_3(base: list[float], head: list[float]) -> bool:
    """The minimum of k blocks: head's fastest block is 3% slower than base's."""
    return min(head) > 1.03 * min(base)


SEQUENTIAL_JUDGES: dict[str, Callable[[list[float], list[float]], bool]] = {
    "pytest-benchmark, mean:5%": mean_5,
    "google/benchmark, U test": u_test,
    "least of 40, 3%": least_3,
}
ONCE, GATE = "the gate without its rerun", "the gate"


def planted_in(record: dict[str, Any]) -> tuple[float, ...]:
    """The planted slow-downs, 0 first. Old records without the field have the default ones."""
    return tuple(record["settings"].get("planted", PLANTED))


def judged(record: dict[str, Any]) -> dict[str, dict[float, list[str]]]:
    """By judge and planted slow-down: `slower`, `pass` or `inconclusive` of each trial."""
    by_place = {(t["set"], t["trial"], t["planted"]): t for t in record["trials"]}
    sets, trials = record["settings"]["sets"], record["settings"]["trials"]
    seen: dict[tuple[int, int, float], tuple[bool, bool, float]] = {}

    def alarm(number: int, trial: int, planted: float) -> tuple[bool, bool, float]:
        """(slower, faster, the upper bound)"""
        key = (number % sets, trial % trials, planted)
        if key not in seen:
            launches: Launches = by_place[key]["pairs"]
            found = {"it": estimate(launches, RULE)}
            slower, faster = (bool(alarms(found, RULE, faster=way)) for way in (False, True))
            seen[key] = (slower, faster, found["it"].high)
        return seen[key]

    names = (GATE, ONCE, *SEQUENTIAL_JUDGES)
    shown = planted_in(record)
    verdicts: dict[str, dict[float, list[str]]] = {name: {planted: [] for planted in shown} for name in names}
    for (number, trial, planted), own in by_place.items():
        first, again = alarm(number, trial, planted), alarm(number + 1, trial, planted)
        # Another trial of the same set supplies the controls of a trial.
        same, control = alarm(number, trial + 1, 0.0), alarm(number, trial + 1, VISIBLE)
        last = again if first[0] else first
        if same[0] or same[1]:
            gate = "inconclusive"
        elif first[0] and again[0]:
            gate = "slower"
        else:
            gate = "pass" if control[0] and last[2] < 1 + VISIBLE else "inconclusive"
        verdicts[GATE][planted].append(gate)
        verdicts[ONCE][planted].append("slower" if first[0] else "pass")
        for name, judge in SEQUENTIAL_JUDGES.items():
            verdicts[name][planted].append("slower" if judge(own["base"], own["head"]) else "pass")
    return verdicts


def drawn(record: dict[str, Any]) -> str:
    """The table: alarms of each judge at each planted slow-down, with Wilson's 95% interval."""
    machine, settings = record["environment"], record["settings"]
    benchmark = " ".join(str(settings["benchmark"][k]) for k in ("operator", "case", "phase", "backend", "clock"))
    blocks = f" in blocks of {settings['seconds'] * 1e3:g} ms" if "seconds" in settings else ""
    head = ["judge", "0%: false alarms", *(f"{p:.0%}: seen" for p in planted_in(record)[1:]), "inconclusive"]
    rows = []
    for name, by_planted in judged(record).items():
        cells = [percent(found.count("slower"), len(found)) for found in by_planted.values()]
        everything = [verdict for found in by_planted.values() for verdict in found]
        rows.append(
            [name, *cells, percent(everything.count("inconclusive"), len(everything)) if name == GATE else "never"]
        )
    lines = [
        f"{machine['gpu'] or machine['cpu']}, torch {machine['torch']}, {benchmark}: {settings['sets']} sets of "
        f"{settings['trials']} trials, {settings['launches']} launches of {settings['pairs']} pairs{blocks}.",
        "",
        *(f"| {' | '.join(line)} |" for line in (head, ["---"] * len(head), *rows)),
    ]
    return "\n".join(lines) + "\n"


def with_place(document: str, name: str) -> str:
    """The page with markers for that record's table; new ones are added at the end."""
    if f"<!-- {name} -->" in document:
        return document
    return f"{document.rstrip()}\n\n<!-- {name} -->\n\n<!-- end -->\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", type=int, default=10, help="sets, each with its own launches")
    parser.add_argument("--trials", type=int, default=5, help="per planted slow-down and set; at least 2")
    parser.add_argument("--launches", type=int, default=SamplingPlan.launches)
    parser.add_argument("--pairs", type=int, default=SamplingPlan.pairs, help="in a launch")
    parser.add_argument("--seconds", type=float, default=SamplingPlan.seconds, help="of a block")
    parser.add_argument(
        "--planted", type=float, nargs="+", default=list(PLANTED), help="planted slow-downs; 0 and 0.1 are always added"
    )
    parser.add_argument("--threads", type=int, default=1)
    for name, usual in (("operator", "lltm"), ("backend", "python-autograd"), ("device", "cpu"), ("case", "tutorial")):
        parser.add_argument(f"--{name}", default=usual)
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--phase", default="forward")
    parser.add_argument("--clock", default="wall")
    parser.add_argument("-o", "--output", type=Path, help="write the record of a new study here")
    parser.add_argument("--draw", type=Path, metavar="RECORD", help="put its table into docs/gate.md")
    given = parsed(parser)
    if given.output:
        if given.sets < 2 or given.trials < 2:
            parser.error("--sets and --trials should be at least 2: reruns and controls are other sets and trials")
        names = ("operator", "backend", "device", "dtype", "case", "phase", "clock")
        benchmark = {key: getattr(given, key) for key in names}
        planted = tuple(sorted({0.0, VISIBLE, *given.planted}))  # the gate's own controls need 0 and VISIBLE
        size = Size(given.sets, given.trials, given.launches, given.pairs, given.seconds, planted)
        write(study(benchmark, size, given.threads), given.output)
    if given.draw:
        document = with_place(DOCUMENT.read_text(encoding="utf-8"), str(given.draw))
        DOCUMENT.write_text(tables.insert(drawn(read(given.draw, KIND)), document, str(given.draw)), encoding="utf-8")


if __name__ == "__main__":
    main()
