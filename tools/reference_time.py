"""`python -m tools.reference_time`: the seconds of one command that judges by another function, without a contract.

For each reference a fresh folder has two plain functions and an example call, and an empty cache. `judge` asks all
levels in all dtypes, first with nothing kept, then with the expected results that the first run has kept. Seconds are
by the clock and of all processors together; the second do not depend on what else runs. Run it on a quiet machine.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from tools.verdict_time import CANDIDATE as RMS_NORM

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
    """Print a table. Exit code 1 if a command failed."""
    parser = argparse.ArgumentParser(prog="python -m tools.reference_time", description=__doc__)
    parser.add_argument("--operator", action="append", choices=REFERENCES, help="only this one; repeatable")
    parser.add_argument("options", nargs="*", help="options of `judge`, behind --")
    given = parser.parse_args(arguments)
    codes = []
    print("| reference | nothing kept: clock, s | processors, s | kept: clock, s | processors, s |")
    print("| --- | --- | --- | --- | --- |")
    for name in given.operator or REFERENCES:
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "it.py").write_text(REFERENCES[name])
            timed = [_timed(Path(folder), given.options) for _ in range(2)]
        codes += [code for *_, code in timed]
        cells = [f"failed ({code})" if code else f"{clock:.1f} | {busy:.1f}" for clock, busy, code in timed]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)
    return int(any(codes))


def _timed(folder: Path, options: Sequence[str]) -> tuple[float, float, int]:
    """Seconds by the clock, seconds of all processors, and the exit code."""
    command = [sys.executable, "-m", "harness", "judge", "--candidate=it.py:fast", "--reference=it.py:slow"]
    command += ["--example=it.py:args", "--device=cpu", "--report=report.json", *options]
    environment = {**os.environ, "LLTM_CONFORMANCE_CACHE": str(folder / "cache")}
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    seconds, after = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        print(done.stdout[-1000:], done.stderr[-1000:], file=sys.stderr)
    return seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, done.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
