"""Measure how often the harness is wrong, and draw the tables of docs/method.md from the record.

    python -m tools.study.method -o results/cpu/method.json                      # minutes; writes after each operator
    python -m tools.study.method --operator mlp --seeds 1 -o reports/method.json # one operator, quickly
    python -m tools.study.method --draw results/cpu/method.json                  # tables into docs/method.md
    python -m tools.study.plot results/cpu/method.json                           # figures into docs/method/

An operator that the record already has is measured anew.
"""

from __future__ import annotations

import argparse
import json
import re
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import torch

from harness.discovery import operator
from harness.judging.scenario import realise
from harness.judging.scenarios import ordinary
from harness.running import environment
from spec.contract import DTYPES
from tools.study import candidates, tables
from tools.study.candidates import CONTROLS, OPERATORS, name_of
from tools.study.judges import JUDGES, measure
from tools.study.options import parsed
from tools.study.products import sums_of
from tools.study.running import FAULTS_EVERY, GRADED_EVERY, of_dtype, pool, scenarios

DOCUMENT = Path("docs/method.md")
#: Seeds of each operator, so that all take about as long.
SEEDS = {"lltm": 40, "mlp": 40, "layer_norm": 24, "lltm_sequence": 12}


def study(of: str, seeds: int, jobs: int = 1, dtypes: tuple[torch.dtype, ...] = DTYPES) -> dict[str, Any]:
    """What the record has of one operator. With several jobs, dtypes run in parallel."""
    asked = [of] * len(dtypes), [seeds] * len(dtypes), dtypes
    if jobs == 1:
        found = list(map(of_dtype, *asked))
    else:
        with ProcessPoolExecutor(jobs, initializer=torch.set_num_threads, initargs=(1,)) as workers:
            found = list(workers.map(of_dtype, *asked))
    parts = {name_of(dtype): part for dtype, part in zip(dtypes, found, strict=True)}
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
        "counts": {name: part["counts"] for name, part in parts.items()},
        "used_by_controls": {name: part["used"] for name, part in parts.items()},
        "at_edges": {
            "calls": sum(part["calls"] for part in edges),
            "alarms": [sum(alarms) for alarms in zip(*(part["alarms"] for part in edges), strict=True)],
            "caught": {name: seen for part in edges for name, seen in part["caught"].items()},
        },
        "longest_sums": longest_sums(of),
        "block_shares": block_shares(of, seeds),
    }


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
    options = parsed(parser)
    if options.output:
        torch.set_num_threads(1)
        _study(options)
    if options.draw:
        DOCUMENT.write_text(tables.insert(json.loads(options.draw.read_text()), DOCUMENT.read_text()))


if __name__ == "__main__":
    main()
