"""A second process that computes expected results before the judge needs them, so that two cores have work.

The judge and a candidate wait for each other. What the judge computes meanwhile for the first time, exact values and
allowances, depends on nothing that the candidate returns. So a fork of the judge goes through the scenarios that the
properties foresee, from the last to the first, and has the store keep the results. The judge goes from the first to
the last, and computes by itself what the store does not have yet. They meet, and the fork ends. It never sees the
candidate: it has none of the judge's descriptors. Where forks of the judge have cells of their own
(`harness.running.dividing`), each does this when it has judged them, and no other fork is made.
"""

from __future__ import annotations

import gc
import os
import signal
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import torch

from harness.executing.descriptors import close_all_but
from harness.executing.lifeline import end_with_parent
from harness.judging import oracle, stored
from harness.judging.property import Property
from harness.judging.scenario import Scenario
from harness.judging.subject import Subject
from harness.running import forking
from harness.running.selection import Slot
from spec.contract import Operator

#: So many results one after the other that are kept already: the judge has been there, now or in an earlier run.
_MET = 24

Asked = Sequence[tuple[Slot, Property]]


def begin(asked: Asked, store: Path) -> Callable[[], None] | None:
    """Start the process; returns what ends it. None where there is no second core, or where none can be forked.

    `asked` are the cells in the order in which they are judged, all in one process. Its other threads read what
    candidates print, and hold nothing that the fork needs.
    """
    wanted = what_can_be_foreseen(asked)
    if not wanted or not forking.may_fork() or len(os.sched_getaffinity(0)) < 2:
        return None
    parent = os.getpid()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # that there are other threads: see above
        child = os.fork()
    if child == 0:
        end_with_parent(parent)
        close_all_but(set())
        forking.leave_quietly(lambda: prepare(wanted, store))

    def end() -> None:
        if os.getpid() == parent:
            with suppress(ProcessLookupError, ChildProcessError):
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)

    return end


def what_can_be_foreseen(asked: Asked) -> Asked:
    """The cells that the judge judges by itself and whose scenarios are known before."""
    return [(slot, property) for slot, property in asked if property.outside and property.foreseen is not None]


def prepare(asked: Asked, store: Path) -> None:
    """Compute what these cells, in this order, will need and the store does not have, the last first.

    It ends where the judge has been. The process is a fork of the judge, and has nothing else to do after it.
    """
    gc.freeze()
    torch.set_num_threads(1)  # as in the judge, so that the results are the same to the last bit
    met = 0
    with stored.used(store):
        for operator, values, dtype in backwards(asked):
            try:
                met = 0 if oracle.prepare(operator, values, dtype) else met + 1
            except Exception:  # the judge meets it too, and says so
                continue
            if met == _MET:
                return


def backwards(asked: Asked) -> Iterator[tuple[Operator, Scenario, torch.dtype]]:
    """What is foreseen, the last first, each once."""
    seen = set[tuple[str, Scenario, torch.dtype]]()
    for slot, property in reversed(asked):
        assert property.foreseen is not None
        whole = Subject(
            slot.operator, slot.backend, slot.device, slot.dtype, _none, examples=slot.examples, files=slot.files()
        )
        for form in reversed(slot.operator.every_form()):
            found: list[Scenario] = []
            with suppress(Exception):  # as above
                found = list(property.foreseen(whole.in_form(form)))
            for values in map(oracle.values_of, reversed(found)):
                key = form.title, values, slot.dtype
                if key not in seen:
                    seen.add(key)
                    yield form, values, slot.dtype


def _none(*_: object) -> None:
    """In place of an implementation: nothing is called here."""
