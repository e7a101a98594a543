"""`python -m harness gate`: is this tree slower than that commit, or than that record?"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import asdict
from math import exp
from pathlib import Path
from typing import Any

import torch
from rich.console import Console

from backends.base import CPU, CUDA
from harness.bench import correctness, record
from harness.bench.record import WRONG
from harness.cli import parsing
from harness.cli.main import COMMANDS
from harness.errors import Broken, Failure, HarnessError, Unavailable, UsageError
from harness.gate import builds, drawing, instructions, matching, sampling, trees, verdict
from harness.gate.baseline import against_baseline
from harness.gate.sampling import KINDS, Samples, SamplingPlan
from harness.gate.statistics import MINIMUM_LAUNCHES, MINIMUM_PAIRS, Rule
from harness.gate.workers import workers
from harness.measuring.clocks import CLOCKS, WALL
from harness.rendering import tables
from harness.running import environment
from harness.running.selection import Selection, slots
from spec.contract import PHASES

KIND, SCHEMA = "gate", 1
PLAN, RULE = SamplingPlan(), Rule()


def _parser() -> argparse.ArgumentParser:
    command = parsing.parser("gate", COMMANDS["gate"])
    asked = command.add_mutually_exclusive_group(required=True)
    asked.add_argument("--base", metavar="REV", help="the commit to compare with, built beside this tree")
    asked.add_argument("--baseline", type=Path, metavar="FILE", help="a bench record; ratios are compared")
    asked.add_argument("--show", type=Path, metavar="FILE", help="show a gate record")
    for name in matching.NAMES:
        command.add_argument(f"--{name}", action="append", default=[], metavar=name.upper(), help="repeatable")
    command.add_argument("--phase", action="append", choices=PHASES, help="repeatable; default: all")
    command.add_argument(
        "--clock", action="append", choices=CLOCKS, help="repeatable; default: wall, on CUDA graph too"
    )
    command.add_argument("--launches", type=int, default=PLAN.launches, metavar="N", help="starts of the workers")
    command.add_argument("--pairs", type=int, default=PLAN.pairs, metavar="N", help="ABBA pairs a launch")
    command.add_argument("--block", type=float, default=PLAN.seconds, metavar="S", help="seconds of a block of calls")
    command.add_argument("--longest", type=float, default=PLAN.longest, metavar="S", help="leave out longer blocks")
    command.add_argument("--threads", type=int, default=PLAN.threads, metavar="N", help="of the CPU")
    command.add_argument("--threshold", type=float, default=RULE.threshold, help="the 99%% bound must exceed this")
    command.add_argument("--median", type=float, default=RULE.median, help="the median must exceed this too")
    command.add_argument("--instructions", action="store_true", help="count instructions too; needs valgrind, minutes")
    command.add_argument("--build", action="store_true", help="time a build of each compiled operator too; minutes")
    command.add_argument("--seed", type=int, default=0, metavar="N", help="seed of all random orders")
    command.add_argument("-o", "--output", type=Path, default=Path("reports/gate.json"), metavar="FILE")
    return command


def main(arguments: Sequence[str]) -> int:
    """Measure, write the record with its Markdown and plot, and show it. Raises UsageError for invalid options."""
    given = _parser().parse_args(arguments)
    console, note = tables.console(sys.stdout), Console(stderr=True)

    def say(text: str) -> None:
        note.print(text, markup=False, highlight=False)

    if given.show:
        made = record.read(given.show, KIND, "--show")
    elif given.baseline:
        return against_baseline(given, console, say)
    else:
        made = _compared(given, say)
        record.write(made, given.output)
        given.output.with_suffix(".md").write_text(drawing.markdown(made), encoding="utf-8")
        drawing.plot(made, given.output.with_suffix(".svg"))
        say(f"record: {given.output}, and .md and .svg beside it")
    drawing.show(made, console)
    return verdict.EXIT_CODES[made["verdict"]]


def _compared(given: argparse.Namespace, say: sampling.Say) -> dict[str, Any]:
    try:
        rule = Rule(given.threshold, given.median)
    except ValueError as error:
        raise UsageError(f"--threshold and --median: {error}") from None
    plan = SamplingPlan(given.launches, given.pairs, given.block, given.longest, given.threads, given.seed)
    if plan.launches < MINIMUM_LAUNCHES or plan.launches * plan.pairs < MINIMUM_PAIRS:
        say(f"fewer than {MINIMUM_LAUNCHES} launches or {MINIMUM_PAIRS} pairs: the result will be inconclusive")
    with trees.worktree(given.base) as base:
        say(f"base: {given.base} in {base}")
        benchmarks, fates, broken = _matched(base, given)
        right, wrong = _checked(benchmarks)
        timed = [{**benchmark, **how} for benchmark in right for how in _ways(benchmark, given)]
        samples = sampling.sample(base, trees.HEAD, timed, plan, say)
        suspects = verdict.suspects(samples, rule)
        again: dict[str, Samples] = {}
        if suspects:
            say(f"measured once more: {', '.join(sorted(suspects))}")
            asked = [samples[name].benchmark for name in sorted(suspects)]
            rerun = SamplingPlan(**{**asdict(plan), "seed": plan.seed + 1})
            again = sampling.sample(base, trees.HEAD, asked, rerun, say)
        counted = instructions.compare(base, trees.HEAD, timed, say) if given.instructions else {}
        built = builds.compare(base, trees.HEAD, right, say) if given.build else {}
    found = [*verdict.results(samples, again, rule), *broken]
    problems = [*wrong, *instructions.problems(counted), *builds.problems(built)]
    return {
        "kind": KIND,
        "schema": SCHEMA,
        "environment": environment.describe(),
        "base": trees.commit_of(given.base),
        "head": trees.commit_of("HEAD"),
        "plan": asdict(plan),
        "rule": asdict(rule),
        "verdict": verdict.overall(found, fates, problems),
        "results": [asdict(result) for result in found],
        "fates": [asdict(fate) for fate in fates],
        "wrong": problems,
        "instructions": [{"benchmark": name, "base": a, "head": b} for name, (a, b) in counted.items()],
        "builds": [{"benchmark": name, "base": a, "head": b} for name, (a, b) in built.items()],
        "samples": [_raw(name, s) for name, s in (*samples.items(), *again.items())],
    }


def _raw(name: str, samples: Samples) -> dict[str, Any]:
    """All samples: the ratios, launch by launch, and the four times of each."""

    def rounded(values: Sequence[float]) -> list[float]:
        return [float(f"{value:.5g}") for value in values]

    ratios = {kind: [rounded([exp(p) for p in launch]) for launch in samples.launches(kind)] for kind in KINDS}
    seconds = {kind: [[rounded(q) for q in launch] for launch in samples.quadruples[kind]] for kind in KINDS}
    return {"benchmark": name, "ratios": ratios, "seconds": seconds}


def _matched(
    base: Path, given: argparse.Namespace
) -> tuple[list[dict[str, Any]], list[matching.Fate], list[verdict.Result]]:
    """The benchmarks to be compared, the fates of the others, and what base cannot import."""
    devices = given.device or [CUDA if torch.cuda.is_available() else CPU]
    dtypes = given.dtype or ["float32"]
    with workers([base, trees.HEAD], given.threads) as both:
        before, after = (worker.ask("benchmarks", devices=devices, dtypes=dtypes) for worker in both)
    if after["broken"]:
        raise Broken("; ".join(str(entry["reason"]) for entry in after["broken"]))
    wanted = {key: tuple(getattr(given, key)) for key in ("operator", "backend", "case")}
    ours = matching.selected(after["benchmarks"], wanted)
    reasons = {matching.name(benchmark): matching.why_broken(benchmark, before["broken"]) for benchmark in ours}
    lost = [verdict.broken_in_base(name, why) for name, why in reasons.items() if why]
    ours = [benchmark for benchmark in ours if not reasons[matching.name(benchmark)]]
    return *matching.match(matching.selected(before["benchmarks"], wanted), ours), lost


def _ways(benchmark: dict[str, Any], given: argparse.Namespace) -> list[dict[str, str]]:
    """The phases in which a benchmark is timed, and the clocks."""
    usual = list(CLOCKS) if benchmark["device"] == CUDA else [WALL]
    return [{"phase": phase, "clock": clock} for phase in given.phase or PHASES for clock in given.clock or usual]


def _checked(benchmarks: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], list[str]]:
    """Correctness first: the benchmarks whose results agree with the contract, and what is wrong with the others.

    Benchmarks that this machine cannot run are kept: the workers report them.
    """
    right, wrong = [], []
    for benchmark in benchmarks:
        operator, backend, device, dtype = ((str(benchmark[key]),) for key in matching.NAMES[:4])
        (slot,) = slots(Selection(operator, backend, device, dtype))
        try:
            subject = slot.subject()
            correctness.check(subject.in_form(subject.operator), subject.operator.case(benchmark["case"]))
        except Unavailable:
            pass
        except (Broken, Failure) as error:
            wrong.append(f"{matching.name(benchmark)}: {WRONG}: {error}")
            continue
        except HarnessError as error:
            wrong.append(f"{matching.name(benchmark)}: {error}")
            continue
        right.append(benchmark)
    return right, wrong
