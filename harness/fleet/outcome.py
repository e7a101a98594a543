"""The verdict on a candidate, from how its judge ended and the report that it left. A worker makes it."""

from __future__ import annotations

import signal
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from harness.errors import UsageError
from harness.fleet.scoring import score
from harness.rendering import sentence
from harness.rendering.marks import cut
from harness.report.cell import FAIL, VERDICTS
from harness.report.report import Report

#: Verdicts beside those of a report: the judge refused the call, took too long, or ended twice without a report.
REFUSED, TIMEOUT, BROKEN = OTHER_VERDICTS = ("refused", "timeout", "broken")
ALL_VERDICTS = (*VERDICTS, *OTHER_VERDICTS)
#: Exit codes of pytest: a call that it refuses, and one that selects nothing.
_REFUSED = (4, 5)
_LONGEST = 2_000


@dataclass(frozen=True)
class Ending:
    """How a judge ended: by an exit code or by a signal, or because its time was up; the text of its report, if there
    is one; and the end of what it printed."""

    exit_code: int | None
    signal: int
    timed_out: bool
    seconds: float
    cpu_seconds: float
    report: str
    said: str


@dataclass(frozen=True)
class Outcome:
    """What a worker answers: plain data, which goes to another process or another machine.

    `verdict` is empty if the ending says nothing about the candidate, because its judge died or left no report; then
    `sentence` says how it ended.
    """

    right: bool
    verdict: str
    score: float
    sentence: str
    exit_code: int | None
    seconds: float
    cpu_seconds: float
    report: str
    output: str

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> Outcome:
        """From JSON. Raises TypeError if fields are missing."""
        return cls(**record)


#: The answer of a worker that died.
DIED = Outcome(False, "", 0.0, "the worker died", None, 0.0, 0.0, "", "")


@dataclass(frozen=True)
class CandidateResult:
    """The verdict on one candidate.

    `right` says whether everything that was required holds: the judge's exit code 0. `verdict` is that of the report's
    required levels (pass, fail, declared, no-evidence, not-run), or `refused` if the judge could not be asked this,
    `timeout` if it took too long, `broken` if it ended twice without a report. `score` is a number from 0 to 1: see
    `harness.fleet.score`; it is 0 without a complete report. `sentence` says the verdict in words. `seconds` are those
    of the clock, of the last try; `cpu_seconds` those of the judge's process on processors, without those of the
    candidate's own processes. `report` is the JSON text of the report, or empty; `output` the end of what the judge
    printed.
    """

    id: str
    attempts: int
    worker: str
    right: bool
    verdict: str
    score: float
    sentence: str
    exit_code: int | None
    seconds: float
    cpu_seconds: float
    report: str
    output: str

    @classmethod
    def of(cls, id: str, found: Outcome, attempts: int, worker: str) -> CandidateResult:
        """The result of an outcome; it is `broken` if that one has no verdict."""
        if not found.verdict:
            last = _last_line(found.output)
            how = f"Broken: {found.sentence} each of {attempts} times"
            found = replace(
                found, verdict=BROKEN, sentence=f"{how}; its last line of output was: {last}" if last else how
            )
        return cls(id, attempts, worker, **{**asdict(found), "sentence": cut(found.sentence, _LONGEST)})

    def read_report(self) -> Report:
        """The report. Raises UsageError if there is none."""
        return _read(self.report)


def outcome(ending: Ending) -> Outcome:
    """The outcome of that ending."""
    report = None
    if ending.report:
        try:
            report = _read(ending.report)
        except UsageError:
            report = None
    verdict, said = _verdict(ending, report)
    return Outcome(
        right=verdict not in ("", TIMEOUT) and ending.exit_code == 0,
        verdict=verdict,
        score=score(report) if report is not None and verdict else 0.0,
        sentence=said,
        exit_code=ending.exit_code,
        seconds=ending.seconds,
        cpu_seconds=ending.cpu_seconds,
        report=ending.report if report is not None and verdict else "",
        output=ending.said,
    )


def _verdict(ending: Ending, report: Report | None) -> tuple[str, str]:
    """(the verdict or "", the sentence)."""
    if ending.timed_out:
        return _late(ending, report)
    if ending.exit_code in (0, 1) and report is not None:
        return sentence.outcome(report)
    if ending.exit_code in _REFUSED:
        return REFUSED, f"Not judged: {_last_line(ending.said) or 'the judge refused the call'}"
    if ending.signal:
        try:
            name = signal.Signals(ending.signal).name
        except ValueError:
            name = f"signal {ending.signal}"
        return "", f"the judge was ended by {name}"
    return "", f"the judge ended with exit code {ending.exit_code} and without a complete report"


def _late(ending: Ending, report: Report | None) -> tuple[str, str]:
    """A failure that was found before the time was up stays one."""
    said = f"Too slow: the judge was ended after {ending.seconds:.0f} s."
    if report is None:
        return TIMEOUT, said
    verdict, found = sentence.outcome(report)
    return (FAIL if verdict == FAIL else TIMEOUT), f"{said} {found}"


def _read(text: str) -> Report:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "report.json"
        path.write_text(text, encoding="utf-8")
        return Report.read(path)


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else ""
