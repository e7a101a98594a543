"""Run the CUDA kernels under compute-sanitizer's four tools, and turn its output into cells of a report.

Each kernel of an operator is launched at small and at tail sizes, forward and backward, in a separate process. Only
kernels of the backend's namespace are judged: findings in cuBLAS do not count against the backend. The caching
allocator is off, because it places many tensors in one allocation and so hides reads past the end of one of them.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass, replace

import torch

from backends.base import CUDA, CompiledOperator
from harness.building import build
from harness.discovery import FoundBackend
from harness.errors import Unavailable, UsageError
from harness.judging.scenario import Scenario
from harness.judging.scenarios import of_sizes, ordinary
from harness.judging.subject import Subject
from harness.report.cell import FAIL, NO_EVIDENCE, PASS, Cell
from harness.report.report import Report
from harness.running import environment, suite
from harness.running.selection import Selection, Slot, slots

TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")
#: The most elements of all tensors of a call: under a tool a launch takes hundreds of times as long.
_LARGEST = 2**18
#: Seconds for one tool on one slot.
_LIMIT = 540.0
_ATTEMPTS = 2
_KEPT = 20
_PREFIX = re.compile(r"^=========(?P<indent> *)(?P<text>.*)$")
_NO_FINDING = re.compile(
    r"COMPUTE-SANITIZER|(ERROR|LEAK|RACECHECK) SUMMARY|Target application returned|Error: process didn't terminate"
    r"|Warning: Detected overflow",
    re.IGNORECASE,
)
_PLACE = re.compile(
    r"(?:\bat |Frame: ?)(?P<kernel>\S.*?)(?:\+0x[0-9a-f]+|:0x[0-9a-f]+)(?: in (?P<file>\S+?):(?P<line>\d+))?(?:\s|$)"
)
#: What the tool prints of its own failure, which says nothing about a kernel.
_TOOL_FAILED = "Internal Sanitizer Error"
_THREAD = re.compile(r"by thread (\([\d,]+\)) in block (\([\d,]+\))")
_ADDRESS = re.compile(r"(?:Address|Access to|detected at \S+) (0x[0-9a-f]+)")
_SUMMARY = re.compile(
    r"ERROR SUMMARY: (\d+) errors?$|RACECHECK SUMMARY: \d+ hazards? displayed \((\d+) errors?, (\d+) warn"
)


@dataclass(frozen=True)
class Finding:
    """One report of the tool. Unknown fields are empty; an unknown `line` is 0."""

    what: str
    kernel: str = ""
    file: str = ""
    line: int = 0
    address: str = ""
    thread: str = ""

    def in_words(self) -> str:
        """The finding in one line."""
        parts = [
            self.what,
            f"in {self.kernel}" if self.kernel else "",
            f"at {self.file}:{self.line}" if self.file else "",
        ]
        parts += [f"address {self.address}" if self.address else "", self.thread]
        return ", ".join(part for part in parts if part)


def parse(said: str) -> tuple[list[Finding], int | None]:
    """The findings in the text that compute-sanitizer printed, and the number that it counted; None without a count."""
    records: list[list[str]] = []
    counted: int | None = None
    for line in said.splitlines():
        match = _PREFIX.match(line.strip())
        if match is None or not match["text"]:
            continue
        summary = _SUMMARY.search(match["text"])
        if summary:
            counted = (counted or 0) + sum(int(number) for number in summary.groups() if number)
        elif len(match["indent"]) > 1 and records:
            records[-1].append(match["text"])
        elif not _NO_FINDING.match(match["text"]):
            records.append([match["text"]])
    return [_finding(record) for record in records], counted


def _finding(record: Sequence[str]) -> Finding:
    text = "\n".join(line for line in record if not line.startswith(("Host Frame", "Saved host")))
    place, thread, address = _PLACE.search(text), _THREAD.search(text), _ADDRESS.search(text)
    what = record[0] if place is None or place.start() > len(record[0]) else record[0][: place.start()].rstrip()
    return Finding(
        what=what,
        kernel=place["kernel"] if place else "",
        file=(place["file"] or "") if place else "",
        line=int(place["line"] or 0) if place else 0,
        address=address[1] if address else "",
        thread=f"thread {thread[1]} in block {thread[2]}" if thread else "",
    )


def cell_of(slot: Slot, tool: str, said: str, code: int, namespace: str = "") -> Cell:
    """The cell of a slot from a run of the tool: `code` is the exit code of the process that launched the kernels.

    Findings in kernels outside the `namespace` do not count against the backend; they have their own figures.
    """
    every, counted = parse(said)
    if any(finding.what.startswith(_TOOL_FAILED) for finding in every):
        return slot.cell(tool, NO_EVIDENCE, f"{tool} itself failed: {every[0].what}")
    findings = [finding for finding in every if namespace in finding.kernel or not finding.kernel]
    elsewhere = [finding for finding in every if finding not in findings]
    figures = {"errors": counted, "findings": [asdict(finding) for finding in findings[:_KEPT]]}
    figures |= {"elsewhere": [asdict(finding) for finding in elsewhere[:_KEPT]]} if elsewhere else {}
    if findings or (counted and not elsewhere):
        first = findings[0].in_words() if findings else "errors that it counted but did not print"
        more = f" (and {len(findings) - 1} more)" if len(findings) > 1 else ""
        cell = slot.cell(tool, FAIL, f"{tool} found «{first}», but should find nothing{more}")
    elif counted is None or code != 0:
        tail = " / ".join(said.strip().splitlines()[-3:]) or "nothing"
        cell = slot.cell(tool, NO_EVIDENCE, f"{tool} printed no summary, or the calls failed (exit {code}): {tail}")
    else:
        cell = slot.cell(tool, PASS, "")
    return replace(cell, figures=figures)


def program() -> str:
    """Path of compute-sanitizer. Raises Unavailable."""
    found = shutil.which("compute-sanitizer") or shutil.which("compute-sanitizer", path=str(build.cuda_home() / "bin"))
    if found is None:
        raise Unavailable("compute-sanitizer is not on PATH; it comes with the CUDA toolkit")
    return found


def run(
    selection: Selection, tools: Sequence[str], jobs: int = 1, keep: Callable[[Report], None] = lambda _report: None
) -> Report:
    """Every slot with CUDA sources under each tool, `jobs` of them at a time. Raises Unavailable, UsageError.

    `keep` gets the partial report after each cell: a run that is ended early loses only the cells that were running.
    """
    if not torch.cuda.is_available():
        raise Unavailable(f"no CUDA device on this machine (torch {torch.__version__})")
    found = [slot for slot in slots(replace(selection, devices=(CUDA,))) if _source(slot) is not None]
    if not found:
        raise UsageError("nothing to check: the selection has no backend with CUDA sources")
    sanitizer = program()

    machine, known = environment.describe(), suite.describe()

    def check(place: tuple[Slot, str]) -> Cell:
        slot, tool = place
        return _checked(sanitizer, slot, tool)

    for slot in found:
        slot.subject()  # builds it: a compiler under a tool would be slow
    cells: list[Cell] = []
    with ThreadPoolExecutor(jobs) as pool:  # each thread waits for its own process
        places = [pool.submit(check, (slot, tool)) for slot in found for tool in tools]
        for done in as_completed(places):
            cell = done.result()
            cells.append(cell)
            print(f"{cell.verdict:>12}  {'-'.join(cell.key[:4])}  {cell.property}", flush=True)
            keep(replace(Report.of(cells, machine, known), complete=False))
    return Report.of(cells, machine, known)


def _source(slot: Slot) -> CompiledOperator | None:
    if not isinstance(slot.source, FoundBackend) or slot.operator.name in slot.source.backend.absent:
        return None
    found = slot.source.implementation(slot.operator.name)
    return found if isinstance(found, CompiledOperator) and found.has_cuda_sources else None


def _checked(sanitizer: str, slot: Slot, tool: str) -> Cell:
    source = _source(slot)
    assert source is not None
    options = ["--tool", tool, "--show-backtrace", "device", "--print-limit", "0", "--strip-paths", "no"]
    # initcheck must see the writes of every kernel; otherwise it reports their results as uninitialised.
    options += ["--kernel-name", f"kernel_substring={source.namespace}"] if tool != "initcheck" else []
    options += ["--report-api-errors", "no"] if tool == "memcheck" else []
    place = [slot.operator.name, slot.backend, str(slot.dtype).removeprefix("torch.")]
    command = [sanitizer, *options, sys.executable, "-m", "harness.sanitizing.compute_sanitizer", *place]
    env = {**os.environ, "PYTORCH_NO_CUDA_MEMORY_CACHING": "1", "OMP_NUM_THREADS": "1"}
    # Under a tool a process may crash at exit, in threads of PyTorch. That says nothing, so the run is repeated once.
    for _ in range(_ATTEMPTS):
        try:
            done = subprocess.run(command, env=env, capture_output=True, text=True, check=False, timeout=_LIMIT)
        except subprocess.TimeoutExpired:
            return slot.cell(tool, NO_EVIDENCE, f"{tool} was still running after {_LIMIT:.0f} s")
        cell = cell_of(slot, tool, done.stdout + done.stderr, done.returncode, source.namespace)
        if cell.verdict != NO_EVIDENCE:
            break
    return cell


def launch(subject: Subject) -> int:
    """Call the subject at small and tail sizes, forward and backward, in every form; returns the number of calls."""
    count = 0
    for form in subject.operator.every_form():
        now = subject.in_form(form)
        for scenario in (*ordinary(form), *of_sizes(form)):
            if _elements(now, scenario) <= _LARGEST:
                call = now.realise(scenario)
                now.gradients(call, now.outputs(call, scenario), scenario)
                torch.cuda.synchronize()
                count += 1
    return count


def _elements(subject: Subject, scenario: Scenario) -> int:
    sizes = dict(scenario.sizes)
    return sum(
        torch.Size(arg.shape_for(sizes)).numel() for arg in (*subject.operator.inputs, *subject.operator.outputs)
    )


def _main() -> None:
    operator, backend, dtype = sys.argv[1:]
    (slot,) = slots(Selection(operators=(operator,), backends=(backend,), devices=(CUDA,), dtypes=(dtype,)))
    print(f"{launch(slot.subject())} calls")


if __name__ == "__main__":
    _main()
