"""A function of another process, as the judge sees it: what it raises, and what can be asked of it beside a call."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol

from harness.errors import HarnessError
from harness.executing.runner import Seen

if TYPE_CHECKING:  # it imports coverage
    from harness.executing.watching import Branches


class RemoteError(HarnessError):
    """An exception of a candidate in its own process: the name of its class, and its text."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(text)
        self.kind = kind


class RunnerFailure(HarnessError):
    """The process ended, exceeded a limit, or sent something that is no reply. The message is a predicate: "died".

    `said` are the last lines that the process printed, if that is known.
    """

    def __init__(self, how: str, said: str = "") -> None:
        super().__init__(how)
        self.said = said


#: Pairs (output, argument) that share memory; arguments that changed; outputs with elements in one place of memory;
#: pairs of an argument and what was changed of it beside its values.
Effects = tuple[list[tuple[int, int]], list[int], list[int], list[tuple[int, str]]]


class BranchWatch(Protocol):
    """Which branches of some Python files run: a `Watcher` of this process, or that of another one."""

    #: Whether a call has turned off the tracing, so that what ran is not known.
    disturbed: bool

    def watching(self) -> AbstractContextManager[None]:
        """Note what the calls within run."""

    def news(self) -> Branches:
        """The branches that ran and that no earlier answer had, by file."""


class Remote(Protocol):
    """The function of a candidate in another process."""

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Call it; `named` are plain values. Raises RemoteError for what it raised there, and RunnerFailure."""

    def steps(self, arguments: tuple[Any, ...], named: dict[str, Any], shapes: set[tuple[int, ...]]) -> list[Seen]:
        """Call it, and return the intermediate tensors of these shapes."""

    def effects(self) -> Effects:
        """What the latest call did besides returning values, as its process says."""

    def same_addresses(self) -> AbstractContextManager[None]:
        """Within it, every call finds its arguments at the addresses of the call before."""

    def threads(self, count: int) -> AbstractContextManager[None]:
        """Within it, torch has so many threads there, where it has one otherwise."""

    def watch(self, files: Sequence[str]) -> BranchWatch:
        """The watch over these Python files in its process, whose word it is."""
