"""`python -m harness judge` uses all cores, unless an option says otherwise or there is little to do."""

from __future__ import annotations

import os
import sys

import pytest

from harness.cli import judge


@pytest.mark.parametrize(
    ("options", "spread"),
    [
        (["--candidate", "lltm=a.py:f"], True),
        (["--candidate", "lltm=a.py:f", "--device", "cpu"], True),
        (["--candidate", "lltm=a.py:f", "--dtype", "float32"], False),
        (["--candidate", "lltm=a.py:f", "--dtype=float32"], False),
        (["--candidate", "lltm=a.py:f", "-k", "sizes"], False),
        (["--candidate", "lltm=a.py:f", "-ksizes"], False),
        (["--candidate", "lltm=a.py:f", "--isolate=off"], False),
        (["--candidate", "lltm=a.py:f", "--pdb"], False),
    ],
)
def test_a_whole_judgement_is_spread_over_the_cores(
    options: list[str], spread: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[tuple[str, list[str]]] = []
    monkeypatch.setattr(os, "execv", lambda program, command: calls.append((program, command)))
    judge.main(options)
    ((program, command),) = calls
    assert program == sys.executable
    assert command[-len(options) :] == options
    assert ("-n" in command[: -len(options)]) == spread
    if spread:
        assert command[command.index("-n") + 1] == "auto"
