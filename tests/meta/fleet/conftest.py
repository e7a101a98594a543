"""A fleet with a fake judge: candidates are words that it obeys, and it logs each call."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.meta.conftest import ROOT

FAKE = (sys.executable, "-P", str(ROOT / "tests" / "meta" / "fleet" / "fake_judge.py"))


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[str]]:
    """The first lines of the candidates that the fake judge was called with, one for each call."""
    path = tmp_path / "log.txt"
    path.touch()
    monkeypatch.setenv("FAKE_JUDGE_LOG", str(path))
    monkeypatch.setenv("PYTHONPATH", str(ROOT), prepend=os.pathsep)
    return lambda: path.read_text().splitlines()


def obeys(id: str, words: str = "") -> dict[str, Any]:
    """A candidate on which the fake judge does what the words say."""
    return {"id": id, "source": f"# {id}\n# {words}\n", "function": "f", "operator": "op"}


def lines(path: Path, *candidates: dict[str, Any]) -> Path:
    """A JSONL file of these candidates."""
    path.write_text("".join(json.dumps(found) + "\n" for found in candidates))
    return path
