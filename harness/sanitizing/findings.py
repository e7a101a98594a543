"""What compute-sanitizer prints: its findings, and the cell that they are.

Only kernels of the implementation count against it. A backend's kernels are in its namespace. A candidate's have lines,
because they are compiled with `-lineinfo`, or names that are of no library: a finding in cuBLAS is not the candidate's.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

from harness.candidate import Candidate
from harness.report.cell import FAIL, NO_EVIDENCE, PASS, Cell
from harness.running.selection import Slot

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
#: What the tool prints beyond its --print-limit.
_NOT_PRINTED = re.compile(r"ERROR SUMMARY: \d+ errors? (?:was|were) not printed")
#: Names of kernels of PyTorch, cuBLAS, cuDNN and what they are made of.
_OF_A_LIBRARY = re.compile(
    r"(?:void )?(?:(?:at|c10|cub|thrust|cutlass|cask\w*|cublas\w*|cudnn|internal)::"
    r"|(?:maxwell|volta|turing|ampere|hopper|sm\d+|nvjet|cutlass|cudnn|cublas|gemv|gemm|splitK|dot_kernel)\w*)"
)


@dataclass(frozen=True)
class Finding:
    """One report of the tool. Unknown fields are empty; an unknown `line` is 0.

    `kernel` is the function of the place, which may be inlined. `within` are the functions that it is inlined in.
    """

    what: str
    kernel: str = ""
    file: str = ""
    line: int = 0
    address: str = ""
    thread: str = ""
    within: tuple[str, ...] = ()

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
    frames = [match["kernel"] for match in _PLACE.finditer(text)]
    what = record[0] if place is None or place.start() > len(record[0]) else record[0][: place.start()].rstrip()
    return Finding(
        what=what,
        kernel=place["kernel"] if place else "",
        file=(place["file"] or "") if place else "",
        line=int(place["line"] or 0) if place else 0,
        address=address[1] if address else "",
        thread=f"thread {thread[1]} in block {thread[2]}" if thread else "",
        within=tuple(dict.fromkeys(frame for frame in frames if frame != frames[0])),
    )


def _is_of(namespace: str, finding: Finding) -> bool:
    return not finding.kernel or any(namespace in function for function in (finding.kernel, *finding.within))


def _is_own(finding: Finding) -> bool:
    """Whether a finding is in a kernel of the candidate."""
    return bool(finding.file) or not _OF_A_LIBRARY.match(finding.kernel)


def cell_of(slot: Slot, tool: str, said: str, code: int, namespace: str = "") -> Cell:
    """The cell of a slot from a run of the tool: `code` is the exit code of the process that launched the kernels.

    Findings in kernels of others, which for a backend are those outside its `namespace`, do not count against it; they
    have their own figures.
    """
    every, counted = parse(said)
    if any(finding.what.startswith(_TOOL_FAILED) for finding in every):
        return slot.cell(tool, NO_EVIDENCE, f"{tool} itself failed: {every[0].what}")
    of_candidate = isinstance(slot.source, Candidate)
    findings = [found for found in every if (_is_own(found) if of_candidate else _is_of(namespace, found))]
    elsewhere = [finding for finding in every if finding not in findings]
    figures = {"errors": counted, "findings": [asdict(finding) for finding in findings[:_KEPT]]}
    figures |= {"elsewhere": [asdict(finding) for finding in elsewhere[:_KEPT]]} if elsewhere else {}
    if findings or (counted and not elsewhere) or _NOT_PRINTED.search(said):
        first = findings[0].in_words() if findings else "errors that it counted but did not print"
        more = f" (and {len(findings) - 1} more)" if len(findings) > 1 else ""
        cell = slot.cell(tool, FAIL, f"{tool} found «{first}», but should find nothing{more}")
    elif counted is None or code != 0:
        tail = " / ".join(said.strip().splitlines()[-3:]) or "nothing"
        cell = slot.cell(tool, NO_EVIDENCE, f"{tool} printed no summary, or the calls failed (exit {code}): {tail}")
    else:
        cell = slot.cell(tool, PASS, "")
    return replace(cell, figures=figures)
