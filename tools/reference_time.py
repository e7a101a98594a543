"""`python -m tools.reference_time`: the seconds of one command that judges by another function, without a contract.

For each reference a fresh folder has two plain functions and an example call, and an empty cache. `judge` asks all
levels in all dtypes, first with nothing kept, then with the expected results that the first run has kept. Seconds are
by the clock and of all processors together; the second do not depend on what else runs. Run it on a quiet machine.

With `--mutants N`, N mutants of each candidate are judged so too, each with nothing kept: how many are caught, and in
how many seconds. `-- --quick` is given to `judge`.
"""

from __future__ import annotations

import argparse
import ast
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from harness.executing.module_path import with_this_tree
from harness.running import option_values
from tools.mutation.operators import Mutant, mutants, sample
from tools.verdict_time import CANDIDATE as RMS_NORM

#: The exit code of a candidate that fails.
FAILED = 1
_HEAD = "import torch\nfrom torch import Tensor\n"
#: By operator: the reference `slow`, the arguments of one call `args`, and the candidate `fast`.
REFERENCES = {
    "rms_norm": RMS_NORM,
    "cross_entropy": _HEAD
    + """
def slow(logits: Tensor, labels: Tensor) -> Tensor:
    return logits.logsumexp(-1) - logits.gather(-1, labels[:, None])[:, 0]

def args():
    return torch.randn(4, 8), torch.randint(0, 8, (4,))

def fast(logits: Tensor, labels: Tensor) -> Tensor:
    shifted = logits - logits.logsumexp(-1, keepdim=True)
    return -shifted.gather(-1, labels[:, None])[:, 0]
""",
    "attention": _HEAD
    + """
def slow(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
    return torch.softmax(scores.masked_fill(~mask, -1e4), -1) @ v

def args():
    return torch.randn(3, 5, 8), torch.randn(3, 7, 8), torch.randn(3, 7, 9), torch.rand(3, 5, 7) > 0.3

def fast(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    scores = (q / q.shape[-1] ** 0.5) @ k.mT
    return torch.softmax(torch.where(mask, scores, -1e4), -1) @ v
""",
}


def main(arguments: Sequence[str]) -> int:
    """Print a table, and one of mutants. Exit code 1 if a command failed, or ended without a verdict on a mutant."""
    parser = argparse.ArgumentParser(prog="python -m tools.reference_time", description=__doc__)
    parser.add_argument("--operator", action="append", choices=REFERENCES, help="only this one; repeatable")
    parser.add_argument("--mutants", type=option_values.whole(1), metavar="N", help="judge N mutants of each candidate")
    parser.add_argument("options", nargs="*", help="options of `judge`, behind --")
    given = parser.parse_args(arguments)
    names = given.operator or list(REFERENCES)
    right = [_right(name, given.options) for name in _told(names, RIGHT)]
    if not given.mutants:
        return int(not all(right))
    return int(not all([*right, *(_mutants(name, given.mutants, given.options) for name in _told(names, MUTANTS))]))


RIGHT = ("reference", "nothing kept: clock, s", "processors, s", "kept: clock, s", "processors, s")
MUTANTS = ("mutants of", "judged", "caught", "median clock, s", "largest", "not caught")


def _told(names: Sequence[str], header: Sequence[str]) -> Iterator[str]:
    """The names; the header of their table is printed before the first."""
    print(f"| {' | '.join(header)} |\n| {' | '.join('---' for _ in header)} |")
    yield from names


def _right(name: str, options: Sequence[str]) -> bool:
    """Judge a right candidate twice, and print its row. Whether both passed."""
    with _folder(REFERENCES[name]) as folder:
        timed = [_timed(folder, options) for _ in range(2)]
    cells = [f"failed ({code})" if code else f"{clock:.1f} | {busy:.1f}" for clock, busy, code in timed]
    print(f"| {name} | {' | '.join(cells)} |", flush=True)
    return not any(code for *_, code in timed)


def _mutants(name: str, count: int, options: Sequence[str]) -> bool:
    """Judge mutants of a candidate, each with nothing kept, and print their row. Whether each had a verdict."""
    drawn, clocks, codes = sample(of_candidate(REFERENCES[name]), count, 0), [], []
    for mutant in drawn:
        with _folder(mutant.text) as folder:
            clock, _, code = _timed(folder, options)
        clocks.append(clock)
        codes.append(code)
    lived = "; ".join(f"`{mutant.after}`" for mutant, code in zip(drawn, codes, strict=True) if code == 0)
    cells = (name, len(drawn), codes.count(FAILED), f"{statistics.median(clocks):.1f}", f"{max(clocks):.1f}", lived)
    print(f"| {' | '.join(map(str, cells))} |", flush=True)
    return set(codes) <= {0, FAILED}


def of_candidate(text: str) -> list[Mutant]:
    """The mutants of the function `fast` in a source."""
    (fast,) = (node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef) and node.name == "fast")
    assert fast.end_lineno is not None
    return [mutant for mutant in mutants("it.py", text) if fast.lineno <= mutant.line <= fast.end_lineno]


@contextmanager
def _folder(text: str) -> Iterator[Path]:
    """A fresh folder with that file."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "it.py").write_text(text)
        yield Path(folder)


def _timed(folder: Path, options: Sequence[str]) -> tuple[float, float, int]:
    """Seconds by the clock, seconds of all processors, and the exit code."""
    command = [sys.executable, "-m", "harness", "judge", "--candidate=it.py:fast", "--reference=it.py:slow"]
    command += ["--example=it.py:args", "--device=cpu", "--report=report.json", *options]
    own = {"PYTHONPATH": with_this_tree(os.environ), "LLTM_CONFORMANCE_CACHE": str(folder / "cache")}
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    done = subprocess.run(command, cwd=folder, env={**os.environ, **own}, capture_output=True, text=True, check=False)
    seconds, after = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode not in (0, FAILED) or not (folder / "report.json").is_file():
        print(done.stdout[-1000:], done.stderr[-1000:], file=sys.stderr)
    return seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, done.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
