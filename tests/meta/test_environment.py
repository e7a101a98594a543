"""The machine in a report: facts that can be found, null for others, never a guess."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
import torch

from backends.base import CompiledOperator
from harness import discovery
from harness.building import build
from harness.running import environment


def _program(folder: Path, name: str, script: str) -> None:
    file = folder / name
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)


def _git(folder: Path, *arguments: str) -> str:
    who = ["-c", "user.name=a", "-c", "user.email=a@b"]
    done = subprocess.run(["git", "-C", str(folder), *who, *arguments], capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The suite's folder is a repository with one commit."""
    folder = tmp_path / "suite"
    folder.mkdir()
    (folder / "file").write_text("one")
    _git(folder, "init", "-q")
    _git(folder, "add", "file")
    _git(folder, "commit", "-qm", "one")
    monkeypatch.setattr(environment, "_ROOT", folder)
    monkeypatch.delenv("LLTM_CONFORMANCE_COMMIT", raising=False)
    return folder


def test_the_commit_and_whether_it_is_what_ran(repository: Path) -> None:
    said = environment.describe()
    assert (said["commit"], said["dirty"]) == (_git(repository, "rev-parse", "HEAD"), False)
    (repository / "new").write_text("nobody tracks this")
    assert environment.describe()["dirty"] is False
    (repository / "file").write_text("two")
    assert environment.describe()["dirty"] is True


def test_who_copies_the_suite_says_which_commit_it_is(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LLTM_CONFORMANCE_COMMIT", "abc")
    said = environment.describe()
    assert (said["commit"], said["dirty"]) == ("abc", None)


def test_where_git_cannot_say_nothing_is_claimed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment, "_ROOT", tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    monkeypatch.setenv("LLTM_CONFORMANCE_COMMIT", "abc")
    said = environment.describe()
    assert (said["commit"], said["dirty"]) == ("abc", None)
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("LLTM_CONFORMANCE_COMMIT")
    said = environment.describe()
    assert (said["commit"], said["dirty"]) == (None, None)


@pytest.mark.parametrize(
    ("script", "driver"),
    [("echo 580.159.04", "580.159.04"), ("echo NVIDIA-SMI has failed", None), ("echo 580; exit 9", None)],
)
@pytest.mark.skipif(Path("/sys/module/nvidia/version").exists(), reason="this machine's own driver is found first")
def test_the_driver_as_nvidia_smi_tells_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, driver: str | None
) -> None:
    _program(tmp_path, "nvidia-smi", script)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    assert environment.describe()["driver"] == driver


def test_nvcc_tells_its_release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bin").mkdir()
    _program(tmp_path / "bin", "nvcc", "echo nvcc: NVIDIA; echo Cuda compilation tools, release 13.0, V13.0.88")
    monkeypatch.setenv("CUDA_HOME", str(tmp_path))
    build.cuda_home.cache_clear()
    build.compiler_version.cache_clear()
    try:
        assert environment.describe()["nvcc"] == "Cuda compilation tools, release 13.0, V13.0.88"
    finally:
        build.cuda_home.cache_clear()


def test_the_flags_are_those_that_the_build_uses() -> None:
    said = environment.describe()["flags"]
    assert said.keys() >= {"aten-cpp/lltm", "cuda-accessor/lltm", "cuda-raw-pointer/lltm"}
    assert all(flags.startswith("-std=c++20 ") and {"-O2", "-O3"} & set(flags.split()) for flags in said.values())
    assert set(build.HOST_FLAGS) <= set(said["aten-cpp/lltm"].split())


def test_what_needs_a_gpu_is_null_without_one() -> None:
    said = environment.describe()
    for fact in ("gpu", "architecture", "cudnn"):
        assert (said[fact] is None) is not torch.cuda.is_available()
    assert said["tf32"].keys() == {"matmul", "cudnn", "float32_matmul_precision"}


def test_the_flags_are_of_every_compiled_implementation() -> None:
    """A backend without sources is not imported for them."""
    compiled = {
        f"{name}/{operator}"
        for name, backend in discovery.all_backends().items()
        for operator in discovery.operators()
        if isinstance(backend.implementation(operator), CompiledOperator)
    }
    assert set(environment.describe()["flags"]) == compiled
