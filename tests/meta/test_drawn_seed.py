"""Drawn calls are the same in each run of a machine, and a candidate cannot know them."""

from __future__ import annotations

import argparse
import subprocess
from pathlib import Path

import pytest

from harness.building.cache import state_root
from harness.running import drawn_seed, sandbox


@pytest.fixture(autouse=True)
def _state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture
def candidate(tmp_path: Path) -> str:
    file = tmp_path / "kernels.py"
    file.write_text("def lltm(*inputs): ...")
    return f"lltm={file}:lltm"


def test_backends_have_one_seed_and_a_given_one_is_taken() -> None:
    assert drawn_seed.chosen(None, ()) == 0
    assert drawn_seed.chosen(7, ()) == 7
    assert len({drawn_seed.chosen(drawn_seed.RANDOM, ()) for _ in range(8)}) > 1


def test_a_candidate_has_the_same_seed_in_each_run_until_its_file_changes(candidate: str, tmp_path: Path) -> None:
    first = drawn_seed.chosen(None, (candidate,))
    assert first == drawn_seed.chosen(None, (candidate,))
    assert (state_root() / "key").stat().st_mode & 0o077 == 0
    (tmp_path / "kernels.py").write_text("def lltm(*inputs): pass")
    assert drawn_seed.chosen(None, (candidate,)) != first


def test_another_machine_has_another_seed(candidate: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = drawn_seed.chosen(None, (candidate,))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "elsewhere"))
    assert drawn_seed.chosen(None, (candidate,)) != first


def test_without_a_place_for_the_key_each_run_has_its_own(candidate: str, tmp_path: Path) -> None:
    (tmp_path / "state").write_text("no folder")
    assert drawn_seed.chosen(None, (candidate,)) != drawn_seed.chosen(None, (candidate,))


@pytest.mark.parametrize("text", ["-1", "three", "Random", ""])
def test_what_is_no_seed_is_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match=r"but should be a whole number from 0 .*, or random"):
        drawn_seed.seed_or_random(text)
    assert drawn_seed.seed_or_random("random") == "random"
    assert drawn_seed.seed_or_random("12") == 12


@pytest.mark.skipif(not sandbox.is_used("auto"), reason="bubblewrap is not installed, or may not be used here")
def test_a_sandbox_hides_the_key(candidate: str, tmp_path: Path) -> None:
    drawn_seed.chosen(None, (candidate,))
    key = state_root() / "key"
    assert key.is_file()
    inside = tmp_path / "scratch"
    inside.mkdir()
    command = sandbox.command(["ls", "-a", str(key.parent)], inside, "auto")
    found = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert found == [".", ".."]
