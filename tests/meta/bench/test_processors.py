"""Measurements stay on their processors, and the old ones are restored afterwards."""

from __future__ import annotations

import os
import threading

import pytest

from harness.gate.trees import HEAD
from harness.gate.workers import Worker
from harness.measuring.processors import pin, pinned

pytestmark = pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system has no processor affinity")


def test_threads_get_as_many_processors() -> None:
    """So does a thread that is started there; afterwards all processors are available again."""
    before = os.sched_getaffinity(0)
    seen: list[set[int]] = []
    with pinned(1):
        thread = threading.Thread(target=lambda: seen.append(os.sched_getaffinity(0)))
        thread.start()
        thread.join()
        assert os.sched_getaffinity(0) == {max(before)}
    assert seen == [{max(before)}]
    assert os.sched_getaffinity(0) == before


def test_more_threads_than_processors() -> None:
    """No more processors are used than exist."""
    before = os.sched_getaffinity(0)
    with pinned(len(before) + 1):
        assert os.sched_getaffinity(0) == before


def test_they_come_back_after_an_error() -> None:
    """An error inside is passed on."""
    before = os.sched_getaffinity(0)
    with pytest.raises(ZeroDivisionError), pinned(1):
        raise ZeroDivisionError
    assert os.sched_getaffinity(0) == before


def test_workers_of_the_gate_share_one() -> None:
    """Base and head take turns on the same processor."""
    worker = Worker(HEAD, threads=1)
    try:
        worker.greet()
        pid = worker.ask("hello", threads=1)["pid"]
        assert os.sched_getaffinity(pid) == {max(os.sched_getaffinity(0))}
    finally:
        worker.stop()


def test_without_a_way_nothing_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on systems without processor affinity."""
    monkeypatch.delattr(os, "sched_setaffinity")
    monkeypatch.delattr(os, "sched_getaffinity")
    pin(1)
    with pinned(1):
        pass
