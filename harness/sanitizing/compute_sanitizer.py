"""Run CUDA kernels under compute-sanitizer's four tools, and turn its output into cells of a report.

Each operator is called at small and at tail sizes, forward and backward, in a separate process. The caching allocator
is off, because it places many tensors in one allocation and so hides reads past the end of one of them. Products of
half types are made in float32: see `products`. A candidate is foreign code: the tool and all that it starts run in the
sandbox.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from backends.base import CUDA, CompiledOperator
from harness.building import build
from harness.candidate import Candidate
from harness.discovery import FoundBackend
from harness.errors import Unavailable, UsageError
from harness.executing.module_path import with_this_tree
from harness.report.cell import FAIL, NO_EVIDENCE, NOT_RUN, Cell
from harness.report.report import Report
from harness.running import candidate_files, environment, sandbox, suite
from harness.running.selection import Selection, Slot, slots
from harness.sanitizing import launching, products
from harness.sanitizing.findings import cell_of, parse

TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")
#: Seconds for one tool on one slot.
_LIMIT = 540.0
_ATTEMPTS = 2
#: Findings that initcheck prints. It watches the kernels of others too, and where it does not see what a product writes
#: it has a hundred thousand, which took longer to print than _LIMIT. Those that are not printed still count.
_PRINTED = 10_000


def program() -> str:
    """Path of compute-sanitizer. Raises Unavailable."""
    found = shutil.which("compute-sanitizer") or shutil.which("compute-sanitizer", path=str(build.cuda_home() / "bin"))
    if found is None:
        raise Unavailable("compute-sanitizer is not on PATH; it comes with the CUDA toolkit")
    return found


@dataclass(frozen=True)
class WatchedCalls:
    """How one implementation is called under a tool.

    `sanitizer` is the path of compute-sanitizer, `choice` a value of `--sandbox`.
    """

    slot: Slot
    selection: Selection
    sanitizer: str
    choice: str = "auto"

    def command(self, tool: str) -> list[str]:
        """The command line of the calls under a tool; without any if `tool` is empty."""
        return self._command(tool, launching.__name__, *launching.options(self.slot, self.selection))

    def _command(self, tool: str, module: str, *options: str) -> list[str]:
        calls = [sys.executable, "-P", "-m", module, *options]
        whole = [self.sanitizer, *self._options(tool), *calls] if tool else calls
        return sandbox.command(whole, self._scratch(), self.choice) if self._is_foreign else whole

    def environment(self) -> dict[str, str]:
        """The variables of its process: no caching allocator; for a candidate, those of its sandbox too."""
        variables = dict(os.environ)
        if self._is_foreign:
            # Its kernels have lines then, which tells them from those of libraries.
            lines = f"{variables.get('NVCC_APPEND_FLAGS', '')} -lineinfo".strip()
            variables = {**sandbox.environment(self._scratch()), "NVCC_APPEND_FLAGS": lines}
        path = with_this_tree(variables, str(Path.cwd()))
        own = {"PYTHONPATH": path, "PYTORCH_NO_CUDA_MEMORY_CACHING": "1", "OMP_NUM_THREADS": "1"}
        return {**variables, **own}

    def build(self) -> str:
        """Build what it needs, since a compiler under a tool would be slow.

        Returns why a candidate's calls fail, empty if they do not. Raises Unavailable, Broken for a backend.
        """
        if not self._is_foreign:
            self.slot.subject()
            return ""
        try:
            done = self._run(self.command(""))
        except subprocess.TimeoutExpired:
            return f"the calls were still running after {_LIMIT:.0f} s, without any tool"
        tail = " / ".join((done.stdout + done.stderr).strip().splitlines()[-3:]) or "nothing"
        return f"the calls fail without any tool too (exit {done.returncode}): {tail}" if done.returncode else ""

    def cell(self, tool: str) -> Cell:
        """The verdict of a tool."""
        # Under a tool a process may crash at exit, in threads of PyTorch. That says nothing, so the run is repeated.
        late = False
        for _ in range(_ATTEMPTS):
            try:
                done = self._run(self.command(tool))
            except subprocess.TimeoutExpired:
                late = True
                cell = self.slot.cell(tool, NO_EVIDENCE, f"{tool} was still running after {_LIMIT:.0f} s")
                break
            cell = cell_of(self.slot, tool, done.stdout + done.stderr, done.returncode, self._namespace())
            if cell.verdict != NO_EVIDENCE:
                break
        unsure = self._is_foreign and tool == "initcheck" and (cell.verdict == FAIL or late)
        if unsure and not self._sees_products():
            dtype = str(self.slot.dtype).removeprefix("torch.")
            why = f"initcheck does not see what a product writes in {dtype} on this GPU: it reports a copy of one too"
            return replace(cell, verdict=NOT_RUN, reason=f"{why}. Here {cell.reason.partition(', but should')[0]}")
        return cell

    def _sees_products(self) -> bool:
        """Whether initcheck finds nothing in copies of PyTorch's products, which are right: see `products`.

        A candidate may call such kernels by itself, and not through PyTorch. Where initcheck does not end in time,
        nothing is known against what it found.
        """
        try:
            done = self._run(self._command("initcheck", products.__name__, str(self.slot.dtype).removeprefix("torch.")))
        except subprocess.TimeoutExpired:
            return True
        return parse(done.stdout + done.stderr) == ([], 0)

    @property
    def _is_foreign(self) -> bool:
        return isinstance(self.slot.source, Candidate)

    def _run(self, command: Sequence[str]) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command,
            cwd=self._scratch() if self._is_foreign else None,
            env=self.environment(),
            capture_output=True,
            text=True,
            check=False,
            timeout=_LIMIT,
        )

    def _options(self, tool: str) -> list[str]:
        options = ["--tool", tool, "--show-backtrace", "device", "--strip-paths", "no"]
        options += ["--print-limit", str(_PRINTED if tool == "initcheck" else 0)]
        # initcheck must see the writes of every kernel; otherwise it reports their results as uninitialised. The names
        # of a candidate's kernels are not known.
        if tool != "initcheck" and self._namespace():
            options += ["--kernel-name", f"kernel_substring={self._namespace()}"]
        return options + (["--report-api-errors", "no"] if tool == "memcheck" else [])

    def _namespace(self) -> str:
        source = _source(self.slot)
        return "" if source is None else source.namespace

    def _scratch(self) -> Path:
        """Not the usual folder of the candidate: that one holds extensions that were compiled without lines."""
        assert isinstance(self.slot.source, Candidate)
        return sandbox.scratch(f"{self.slot.source.text} under compute-sanitizer")


def run(
    selection: Selection,
    tools: Sequence[str],
    jobs: int = 1,
    keep: Callable[[Report], None] = lambda _report: None,
    choice: str = "auto",
) -> Report:
    """Every candidate, and every backend with CUDA sources, under each tool, `jobs` of them at a time.

    `keep` gets the partial report after each cell: a run that is ended early loses only the cells that were running.
    `choice` is a value of `--sandbox`. Raises Unavailable, UsageError.
    """
    found = chosen(selection)
    if not torch.cuda.is_available():
        raise Unavailable(f"no CUDA device on this machine (torch {torch.__version__})")
    sanitizer = program()
    machine, known = {**environment.describe(), **_of_candidates(found, choice)}, suite.describe()
    cells: list[Cell] = []
    watches: list[WatchedCalls] = []

    def record(cell: Cell) -> None:
        cells.append(cell)
        print(f"{cell.verdict:>12}  {'-'.join(cell.key[:4])}  {cell.property}", flush=True)
        keep(replace(Report.of(cells, machine, known), complete=False))

    for slot in found:
        watch = WatchedCalls(slot, selection, sanitizer, choice)
        why = watch.build()
        if not why:
            watches.append(watch)
        for tool in tools if why else ():
            record(slot.cell(tool, NO_EVIDENCE, why))
    with ThreadPoolExecutor(jobs) as pool:  # each thread waits for its own process
        places = [pool.submit(watch.cell, tool) for watch in watches for tool in tools]
        for done in as_completed(places):
            record(done.result())
    return Report.of(cells, machine, known)


def chosen(selection: Selection) -> list[Slot]:
    """Candidates, and backends with CUDA sources. Raises UsageError if there is none."""
    asked = slots(replace(selection, devices=(CUDA,)))
    found = [slot for slot in asked if isinstance(slot.source, Candidate) or _source(slot) is not None]
    if not found:
        raise UsageError("nothing to check: the selection has no candidate and no backend with CUDA sources")
    return found


def _of_candidates(found: Sequence[Slot], choice: str) -> dict[str, Any]:
    """What a report says of the candidates, as that of `judge` does."""
    given = [slot.source for slot in found if isinstance(slot.source, Candidate)]
    return {"sandbox": sandbox.described(choice), "candidates": candidate_files.described(given)} if given else {}


def _source(slot: Slot) -> CompiledOperator | None:
    if not isinstance(slot.source, FoundBackend) or slot.operator.name in slot.source.backend.absent:
        return None
    found = slot.source.implementation(slot.operator.name)
    return found if isinstance(found, CompiledOperator) and found.has_cuda_sources else None
