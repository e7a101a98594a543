"""The pytest-benchmark session: what it calls before pytest-benchmark plans its rounds by one call."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from harness.discovery import load_function, operator
from harness.judging.scenarios import representative
from harness.judging.subject import Subject
from harness.measuring import work
from tests.benchmarks import test_speed as session


def test_the_first_calls_are_not_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first backward of a process starts threads: five rounds were planned by it, where others have a thousand."""
    contract = operator("lltm")
    subject = Subject(contract, "it", "cpu", torch.float32, load_function("lltm", "python-autograd", "cpu"))
    calls: list[str] = []
    monkeypatch.setattr(work, "prepare", lambda *_: SimpleNamespace(once=lambda: calls.append("call")))

    def benchmark(once: Any) -> None:
        calls.append("benchmark")
        once()

    place: Any = SimpleNamespace(subject=lambda: subject)
    session.test_speed(place, representative(contract), "backward", benchmark)  # type: ignore[arg-type]
    assert calls == [*["call"] * session.WARM_UP, "benchmark", "call"]
