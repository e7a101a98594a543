"""`python -m harness judge` uses all cores, unless an option says otherwise or there is little to do."""

from __future__ import annotations

import subprocess

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
    calls: list[list[str]] = []
    monkeypatch.setattr(subprocess, "call", lambda command: calls.append(command) or 3)
    assert judge.main(options) == 3
    (command,) = calls
    assert command[-len(options) :] == options
    assert ("-n" in command[: -len(options)]) == spread
    if spread:
        assert command[command.index("-n") + 1] == "auto"
