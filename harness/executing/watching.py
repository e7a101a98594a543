"""Which branches of some Python files run: coverage.py as a library, in the process of the function.

A branch is a pair of lines of which the second ran right after the first. Tracing is on only while a function is
called. What comes from here is advice: a candidate shares its process with this code and may forge it. So it may choose
the next calls and be shown, but no verdict gets better by it. Of compiled code, and of what Triton or TorchScript
compile, nothing is seen.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Sequence

import coverage
import torch

Branches = dict[str, list[tuple[int, int]]]


class Watcher:
    """Notes which branches of the files run, in this thread and in those that are started meanwhile."""

    def __init__(self, files: Sequence[str]) -> None:
        """`files` are resolved paths."""
        self._files = list(files)
        self._coverage = coverage.Coverage(
            data_file=None, branch=True, include=self._files, config_file=False, messages=False, check_preimported=False
        )
        # These would be warnings of a user's process: nothing ran yet, or the function has changed the tracer.
        self._coverage.set_option("run:disable_warnings", ["no-data-collected", "trace-changed", "no-ctracer"])
        self._told: dict[str, set[tuple[int, int]]] = {}
        #: Whether a call has turned off tracing, or left a tracer of its own. What ran is not known then.
        self.disturbed = False

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Note what runs within. There should be no other tracer: it would be gone afterwards.

        The backward of a GPU runs in this thread, and what torch.compile would compile runs as Python: otherwise none
        of their lines would be seen.
        """
        self.disturbed = self.disturbed or sys.gettrace() is not None
        with torch.autograd.set_multithreading_enabled(False), _as_python():
            self._coverage.start()
            ours = sys.gettrace()
            try:
                yield
            finally:
                self.disturbed = self.disturbed or sys.gettrace() is not ours
                self._coverage.stop()

    def news(self) -> Branches:
        """The branches that ran and that no earlier answer had, by file."""
        data, found = self._coverage.get_data(), Branches()
        for file in self._files:
            told = self._told.setdefault(file, set())
            fresh = set(data.arcs(file) or ()) - told
            if fresh:
                found[file] = sorted(fresh)
                told |= fresh
        return found


def _as_python() -> contextlib.AbstractContextManager[object]:
    """torch.compile leaves functions as they are. Nothing is imported for it: that would take seconds."""
    if "torch._dynamo" not in sys.modules:
        return contextlib.nullcontext()
    stance: contextlib.AbstractContextManager[object] = torch.compiler.set_stance("force_eager")
    return stance
