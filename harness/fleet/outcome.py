"""The verdict on a candidate, from the answer of a worker."""

from __future__ import annotations

import signal
import tempfile
from dataclasses import dataclass
from pathlib import Path

from harness.errors import UsageError
from harness.fleet.request import Reply
from harness.fleet.scoring import score
from harness.rendering import sentence
from harness.rendering.marks import cut
from harness.report.cell import FAIL, VERDICTS
from harness.report.levels import exit_reason
from harness.report.report import Report

#: Verdicts beside those of a report: the judge refused the call, took too long, or ended twice without a report.
REFUSED, TIMEOUT, BROKEN = OTHER_VERDICTS = ("refused", "timeout", "broken")
ALL_VERDICTS = (*VERDICTS, *OTHER_VERDICTS)
#: Exit codes of pytest: a call that it refuses, and one that selects nothing.
_REFUSED = (4, 5)
_LONGEST = 2_000


@dataclass(frozen=True)
class Result:
    """The verdict on one candidate.

    `right` says whether everything that was required holds: the judge's exit code 0. `verdict` is that of the report's
    required levels (pass, fail, declared, no-evidence, not-run), or `refused` if the judge could not be asked this,
    `timeout` if it took too long, `broken` if it ended twice without a report. `score` is a number from 0 to 1: see
    `harness.fleet.score`; it is 0 without a complete report. `sentence` says the verdict in words. `seconds` are those
    of the clock, `cpu_seconds` those of processors, of the last try. `report` is the JSON text of the report, or empty;
    `output` the end of what the judge printed.
    """

    id: str
    right: bool
    verdict: str
    score: float
    sentence: str
    exit_code: int | None
    attempts: int
    worker: str
    seconds: float
    cpu_seconds: float
    report: str
    output: str

    def read_report(self) -> Report:
        """The report. Raises UsageError if there is none."""
        return read(self.report)


def read(text: str) -> Report:
    """The report of that text. Raises UsageError if it is none."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "report.json"
        path.write_text(text, encoding="utf-8")
        return Report.read(path)


def is_lost(reply: Reply | None) -> bool:
    """Whether the answer says nothing about the candidate: its worker or its judge died, or left no report."""
    if reply is None:
        return True
    if reply.timed_out or reply.exit_code in _REFUSED:
        return False
    return reply.exit_code not in (0, 1) or _report(reply) is None


def of_reply(id: str, reply: Reply, attempts: int, worker: str) -> Result:
    """The result of an answer that is not lost."""
    report = _report(reply)
    if reply.timed_out:
        verdict, said = _late(report, reply)
    elif report is None:
        verdict, said = REFUSED, f"Not judged: {_last_line(reply.said) or 'the judge refused the call'}"
    else:
        verdict, said = sentence.outcome(report)
    return Result(
        id,
        right=reply.exit_code == 0 and report is not None and not exit_reason(report) and not reply.timed_out,
        verdict=verdict,
        score=score(report) if report is not None else 0.0,
        sentence=cut(said, _LONGEST),
        exit_code=reply.exit_code,
        attempts=attempts,
        worker=worker,
        seconds=reply.seconds,
        cpu_seconds=reply.cpu_seconds,
        report=reply.report if report is not None else "",
        output=reply.said,
    )


def broken(id: str, reply: Reply | None, attempts: int, worker: str) -> Result:
    """The result of a candidate whose answer was lost `attempts` times; `reply` is the last one."""
    how = "the worker died" if reply is None else _ending(reply)
    last = _last_line(reply.said) if reply is not None else ""
    said = f"Broken: {how} each of {attempts} times" + (f"; its last line of output was: {last}" if last else "")
    if reply is None:
        return Result(id, False, BROKEN, 0.0, said, None, attempts, worker, 0.0, 0.0, "", "")
    times = (reply.seconds, reply.cpu_seconds)
    return Result(
        id, False, BROKEN, 0.0, cut(said, _LONGEST), reply.exit_code, attempts, worker, *times, "", reply.said
    )


def _late(report: Report | None, reply: Reply) -> tuple[str, str]:
    """A failure that was found before the time was up stays one."""
    said = f"Too slow: the judge was ended after {reply.seconds:.0f} s."
    if report is None:
        return TIMEOUT, said
    verdict, found = sentence.outcome(report)
    return (FAIL if verdict == FAIL else TIMEOUT), f"{said} {found}"


def _ending(reply: Reply) -> str:
    if reply.signal:
        try:
            return f"the judge was ended by {signal.Signals(reply.signal).name}"
        except ValueError:
            return f"the judge was ended by signal {reply.signal}"
    return f"the judge ended with exit code {reply.exit_code} and without a complete report"


def _report(reply: Reply) -> Report | None:
    if not reply.report:
        return None
    try:
        return read(reply.report)
    except UsageError:
        return None


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else ""
