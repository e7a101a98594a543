"""What a fleet shows while it runs: a live table on a terminal, and a line for each result elsewhere."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from harness.fleet.outcome import ALL_VERDICTS, CandidateResult
from harness.rendering.marks import cut, first_line, printable
from harness.report.cell import PASS

#: Failures that stay on the display, and results from which the throughput is measured.
_FAILURES, _RECENT = 8, 50
_LONGEST_ID, _LONGEST = 40, 160


class Display:
    """Counts what happens, and shows it."""

    def __init__(self, total: int, console: Console, clock: Callable[[], float] = time.monotonic) -> None:
        self._total, self._console, self._clock = total, console, clock
        self._verdicts: Counter[str] = Counter()
        self._right = self._done = self._kept = self._lost = 0
        self._running: dict[str, str] = {}
        self._failures: deque[CandidateResult] = deque(maxlen=_FAILURES)
        self._times: deque[float] = deque([clock()], maxlen=_RECENT)
        self._live = Live(console=console, auto_refresh=False, transient=True) if console.is_terminal else None

    def __enter__(self) -> Display:
        self._context: AbstractContextManager[object] = self._live or nullcontext()
        self._context.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._context.__exit__(None, None, None)

    def kept(self, result: CandidateResult) -> None:
        """A result of an earlier run."""
        self._kept += 1
        self._count(result)

    def started(self, id: str, worker: str) -> None:
        """A worker has begun."""
        self._running[worker] = id

    def lost(self, id: str, worker: str) -> None:
        """A worker died over a candidate, which is tried once more."""
        self._lost += 1
        self._running.pop(worker, None)
        if self._live is None:
            self._say(f"{_id(id)}: {worker} or its judge died; once more elsewhere")

    def finished(self, result: CandidateResult) -> None:
        """A candidate was judged."""
        self._count(result)
        self._running.pop(result.worker, None)
        self._times.append(self._clock())
        if self._live is None:
            self._say(f"{self._done}/{self._total} {self._words(result)}")

    def forget(self, ids: Sequence[str]) -> None:
        """These are queued again, and the fleet ends."""
        self._done -= len(ids)

    def tick(self) -> None:
        """Draw again."""
        if self._live is not None:
            self._live.update(self._drawn(), refresh=True)

    def summary(self) -> str:
        """What the fleet found, in one line."""
        verdicts = ", ".join(f"{name} {self._verdicts[name]}" for name in ALL_VERDICTS if self._verdicts[name])
        kept = f" ({self._kept} were there before)" if self._kept else ""
        return f"{self._done} of {self._total} candidates judged{kept}, {self._right} right: {verdicts or 'none'}"

    def _count(self, result: CandidateResult) -> None:
        self._done += 1
        self._right += result.right
        self._verdicts[result.verdict] += 1
        if not result.right:
            self._failures.append(result)

    def _rate(self) -> float:
        """Candidates a second, of the last ones."""
        passed = self._clock() - self._times[0]
        return (len(self._times) - 1) / passed if passed > 0 and len(self._times) > 1 else 0.0

    def _words(self, result: CandidateResult) -> str:
        return f"{result.verdict} {result.score:.3f} {result.seconds:.1f}s {_id(result.id)}: {_brief(result.sentence)}"

    def _say(self, text: str) -> None:
        self._console.print(printable(text), markup=False, highlight=False, soft_wrap=True)

    def _drawn(self) -> RenderableType:
        rate, left = self._rate(), self._total - self._done
        queue = left - len(self._running)
        figures = Table.grid(padding=(0, 3))
        figures.add_row(
            f"{self._done} of {self._total} judged",
            f"right {self._right}",
            *(f"{name} {self._verdicts[name]}" for name in ALL_VERDICTS if name != PASS and self._verdicts[name]),
        )
        rest = f"{left / rate / 60:.0f} min left" if rate else "no rate yet"
        figures.add_row(f"queue {queue}", f"running {len(self._running)}", f"{rate * 60:.1f} a minute", rest)
        parts: list[RenderableType] = [ProgressBar(total=self._total, completed=self._done), figures]
        if self._lost:
            parts.append(Text(f"{self._lost} tried once more, because a worker or its judge died"))
        parts += [
            Text(printable(f"✗ {self._words(found)}"), no_wrap=True, overflow="ellipsis") for found in self._failures
        ]
        return Group(*parts)


def _id(id: str) -> str:
    return (
        cut(" ".join(printable(id).split()), _LONGEST_ID)
        if len(id) <= _LONGEST_ID
        else f"{printable(id[:_LONGEST_ID])}..."
    )


def _brief(text: str) -> str:
    return first_line(printable(text), _LONGEST)
