"""`python -m tools.verdict_time`: the seconds from Enter to a verdict, by the clock, with a server and without one.

The candidate is RMSNorm in plain torch, judged by another function. Each run is made twice, and the second one counts:
the expected results are kept by then. Run it on a machine that does nothing else; the load is printed beside each time.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from harness.bench import record
from harness.building.cache import state_root
from harness.executing.module_path import with_this_tree
from harness.running import environment

KIND = "verdict-time"
CANDIDATE = """
import torch
from torch import Tensor

def slow(x: Tensor, weight: Tensor) -> Tensor:
    return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6) * weight

def args():
    return torch.randn(4, 8), torch.randn(8)

def fast(x: Tensor, weight: Tensor) -> Tensor:
    return x * (1 / torch.sqrt((x * x).mean(-1, keepdim=True) + 1e-6)) * weight
"""
#: What is run: its name in the table, and the options of `judge`.
RUNS = {
    "values in float32, the first verdict": ("--property=forward-parity", "--dtype=float32"),
    "values and gradients in all dtypes": ("-k", "parity"),
    "`--quick` in float32": ("--quick", "--dtype=float32"),
    "`--quick` in all dtypes": ("--quick",),
    "all levels in all dtypes": (),
}
#: Commands that read a report.
VERBS = ("show", "html", "markdown", "junit", "badge", "validate", "annotations")


@dataclass(frozen=True)
class Timed:
    """Seconds of one command by the clock, the load of the machine before it, and its exit code."""

    name: str
    served: bool
    seconds: float
    load: float
    code: int


def main(arguments: Sequence[str]) -> int:
    """Print a table; with `-o`, write a record too. Exit code 1 if a command failed."""
    parser = argparse.ArgumentParser(prog="python -m tools.verdict_time", description=__doc__)
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--report", type=Path, help="keep the report of the last run of all levels there")
    parser.add_argument("-o", "--output", type=Path)
    given = parser.parse_args(arguments)
    if any(state_root().glob("judge-*.socket")):
        parser.error("a server runs: end it by `python -m harness serve --stop`")
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "rms.py").write_text(CANDIDATE)
        found = _timed(Path(folder), given.device, given.report)
    print(f"| run | alone, s | with a server, s | load |\n| --- | --- | --- | --- |\n{_rows(found)}")
    if given.output:
        about = {"kind": KIND, "schema": record.SCHEMA, "environment": environment.describe()}
        given.output.parent.mkdir(parents=True, exist_ok=True)
        record.write({**about, "rows": [asdict(one) for one in found]}, given.output)
    return int(any(one.code for one in found))


def _timed(folder: Path, device: str, kept: Path | None) -> list[Timed]:
    report = folder / "report.json"
    judge = ["judge", "--candidate=rms.py:fast", "--reference=rms.py:slow", "--example=rms.py:args"]
    judge += [f"--device={device}", f"--report={report}"]
    found = []
    for served in (False, True):
        if served:
            _run(folder, ["serve"])
        try:
            for name, options in RUNS.items():
                if not served:  # what is expected is computed once
                    _run(folder, [*judge, *options])
                found.append(_clocked(folder, name, served, [*judge, *options]))
        finally:
            if served:
                _run(folder, ["serve", "--stop"])
    if kept is not None:
        kept.write_bytes(report.read_bytes())
    return found + [_clocked(folder, f"`{verb}`", False, [verb, str(report)]) for verb in VERBS]


def _clocked(folder: Path, name: str, served: bool, command: Sequence[str]) -> Timed:
    load, began = os.getloadavg()[0], time.monotonic()
    code = _run(folder, command)
    timed = Timed(name, served, round(time.monotonic() - began, 2), round(load, 2), code)
    print(f"{name}{', with a server' if served else ''}: {_cell(timed)}", file=sys.stderr, flush=True)
    return timed


def _run(folder: Path, command: Sequence[str]) -> int:
    program = [sys.executable, "-m", "harness", *command]
    variables = {**os.environ, "PYTHONPATH": with_this_tree(os.environ)}
    done = subprocess.run(program, cwd=folder, env=variables, capture_output=True, text=True, check=False)
    if done.returncode:
        print(
            f"{' '.join(command)}: exit code {done.returncode}: {done.stdout[-500:]}{done.stderr[-500:]}",
            file=sys.stderr,
        )
    return done.returncode


def _cell(one: Timed) -> str:
    return f"failed ({one.code})" if one.code else f"{one.seconds:.2f}"


def _rows(found: Sequence[Timed]) -> str:
    names = dict.fromkeys(one.name for one in found)
    lines = []
    for name in names:
        by = {one.served: one for one in found if one.name == name}
        cells = [_cell(by[served]) if served in by else "" for served in (False, True)]
        lines.append(f"| {name} | {' | '.join(cells)} | {max(one.load for one in by.values()):.1f} |")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
