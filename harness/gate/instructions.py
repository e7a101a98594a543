"""The number of instructions of a call, by callgrind: nearly the same each time, however busy the machine is.

Under valgrind everything is tens of times slower, so there is one process for each tree. It is instrumented only
between two marks (callgrind_marks.c, with the header that torch ships) and writes one dump for each benchmark.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from backends.base import CPU
from harness.building import build
from harness.errors import Unavailable
from harness.gate.matching import name
from harness.gate.sampling import Say
from harness.gate.workers import Worker, WorkerFailed

#: The allowed increase of instructions over base.
MORE = 0.01
CALLS = 20
_MARKS = Path(__file__).parent / "callgrind_marks.c"

Pair = tuple[float, float]


def compare(base: Path, head: Path, benchmarks: Sequence[dict[str, Any]], say: Say) -> dict[str, Pair]:
    """(base, head) instructions of a call on the CPU, by benchmark. Raises Unavailable without valgrind."""
    valgrind = shutil.which("valgrind")
    if valgrind is None:
        raise Unavailable("--instructions needs valgrind, which is not on PATH; install it or leave the option out")
    own = [benchmark for benchmark in benchmarks if benchmark["device"] == CPU]
    with tempfile.TemporaryDirectory() as scratch:
        library = marks(Path(scratch))
        before, after = (_counted(valgrind, tree, library, own, say) for tree in (base, head))
    return {key: (before[key], after[key]) for key in before if key in after}


def marks(folder: Path) -> Path:
    """The marks as a library. Raises Broken or Unavailable if they do not compile."""
    library = folder / "marks.so"
    header = Path(torch.__file__).parent / "utils/benchmark/utils/valgrind_wrapper"
    command = [build.host_compiler(), "-x", "c", "-shared", "-fPIC", f"-I{header}", str(_MARKS), "-o", str(library)]
    build.run_compiler(command, folder, _MARKS.name)
    return library


def _counted(
    valgrind: str, tree: Path, library: Path, benchmarks: Sequence[dict[str, Any]], say: Say
) -> dict[str, float]:
    say(f"instructions of {tree}: {len(benchmarks)} benchmarks under valgrind")
    found: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as scratch:
        out = Path(scratch) / "callgrind.out"
        options = ["--tool=callgrind", "--instr-atstart=no", f"--callgrind-out-file={out}"]
        worker = Worker(tree, threads=1, prefix=[valgrind, "--quiet", *options])
        try:
            worker.greet()
            for benchmark in benchmarks:
                there = set(out.parent.glob("callgrind.out*"))
                try:
                    worker.ask("prepare", benchmark=benchmark)
                    worker.ask("instructions", calls=CALLS, marks=str(library))
                except (Unavailable, WorkerFailed) as error:
                    say(f"instructions of {name(benchmark)}: {error}")
                    continue
                new = set(out.parent.glob("callgrind.out*")) - there
                found[name(benchmark)] = sum(map(total, new)) / CALLS
        finally:
            worker.stop()
    return found


def total(dump: Path) -> int:
    """The number of instructions in a dump of callgrind. Raises ValueError if the file is no such dump."""
    said = re.search(r"^(?:totals|summary): (\d+)", dump.read_text(errors="replace"), re.MULTILINE)
    if said is None:
        raise ValueError(f"{dump} has no totals, but should be a dump of callgrind")
    return int(said[1])


def problems(found: Mapping[str, Pair]) -> list[str]:
    """A sentence for each benchmark that executes too many more."""
    return [
        f"{key}: a call executes {head:,.0f} instructions, where base executes {base:,.0f} ({head / base - 1:+.1%})"
        for key, (base, head) in found.items()
        if head > base * (1 + MORE)
    ]
