"""A wheel with the compiled backends inside: its backends are judged where there is no compiler."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import torch

from backends.aten_cpp.lltm import IMPLEMENTATION
from backends.base import CPU, CompiledOperator
from harness.building import ahead, build
from harness.building.cache import expected_root
from harness.errors import Broken
from tests.meta.conftest import ROOT, environment
from tests.meta.tiers import START

_ONE = "aten-cpp/lltm"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder into which the wheel was installed. One backend stands for all, which are built in the same way."""
    folder = tmp_path_factory.mktemp("wheel")
    tree = folder / "tree"
    ignored = (".git", ".nox", ".venv", "build", "dist", "results", "reports", "site", "docs")
    names = [path for path in ROOT.iterdir() if path.name not in ignored and not path.name.endswith(".egg-info")]
    tree.mkdir()
    for path in names:
        subprocess.run(["cp", "-r", str(path), str(tree)], check=True)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    made = [*pip, "wheel", "-q", "--no-build-isolation", "--no-deps", "--wheel-dir", str(folder), str(tree)]
    subprocess.run(made, check=True, timeout=500, env=environment(LLTM_CONFORMANCE_PREBUILD=_ONE))
    (wheel,) = folder.glob("*.whl")
    assert not wheel.name.endswith("-any.whl"), "it is for one platform"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "site")
    return folder / "site"


def _judged(site: Path, tmp_path: Path) -> tuple[subprocess.CompletedProcess[str], Path]:
    """forward-parity of the wheel's aten-cpp, with nothing on PATH and an empty cache."""
    cache, nothing = tmp_path / "cache", tmp_path / "bin"
    nothing.mkdir()
    env = {"PATH": str(nothing), "HOME": str(tmp_path), "LLTM_CONFORMANCE_CACHE": str(cache), "PYTHONPATH": str(site)}
    options = ["--backend", "aten-cpp", "--operator", "lltm", "--device", "cpu", "--dtype", "float32"]
    command = [sys.executable, "-P", "-m", "harness", "judge", *options, "-k", "test_forward_parity", "-n", "0"]
    kept = {name: value for name, value in os.environ.items() if name in ("LANG", "LD_LIBRARY_PATH")}
    done = subprocess.run(
        command, cwd=tmp_path, env={**kept, **env}, capture_output=True, text=True, check=False, timeout=300
    )
    return done, cache


@pytest.mark.long(START)
def test_a_backend_of_the_wheel_needs_no_compiler(site: Path, tmp_path: Path) -> None:
    done, cache = _judged(site, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    (cell,) = json.loads((tmp_path / "reports" / "conformance.json").read_text())["cells"]
    assert cell["verdict"] == "pass"
    assert [path.name for path in cache.iterdir()] == [expected_root().name], "nothing was built"


@pytest.mark.long(START)
def test_the_wheel_gives_a_command_that_runs_in_any_folder(site: Path, tmp_path: Path) -> None:
    program = """if True:
        import importlib.metadata as metadata
        (entry,) = metadata.distribution("lltm-conformance").entry_points.select(group="console_scripts")
        print(entry.name, entry.load()(["nonsense"]))
    """
    command = [sys.executable, "-P", "-c", program]
    env = environment(PYTHONPATH=str(site))
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False, timeout=60)
    assert done.stdout.split() == ["lltm-conformance", "2"], done.stderr
    assert "unknown command" in done.stderr


@pytest.mark.long(START)
def test_a_source_that_changed_is_not_judged_by_the_old_library(site: Path, tmp_path: Path) -> None:
    source = site / "backends" / "aten_cpp" / "csrc" / "lltm.cpp"
    before = source.read_text()
    source.write_text(before + "// changed\n")
    try:
        done, _ = _judged(site, tmp_path)
    finally:
        source.write_text(before)
    (cell,) = json.loads((tmp_path / "reports" / "conformance.json").read_text())["cells"]
    assert cell["verdict"] == "not-run", done.stdout
    assert "no C++ compiler" in cell["reason"]


def test_the_index_decides(tmp_path: Path) -> None:
    library = tmp_path / "made.so"
    library.write_text("a library")
    folder = tmp_path / "prebuilt"
    ahead.collect([("name", "digest", library)], folder)
    assert ahead.find("name", lambda: "digest", folder) == folder / "name.so"
    assert ahead.find("name", lambda: "other", folder) is None
    assert ahead.find("unknown", lambda: "digest", folder) is None
    (folder / "name.so").unlink()
    with pytest.raises(Broken, match=r"is missing, but .* names it: install the wheel again"):
        ahead.find("name", lambda: "digest", folder)


def test_the_digest_is_of_all_that_a_library_is_made_from(monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(IMPLEMENTATION, CompiledOperator)
    digest = build.made_from(IMPLEMENTATION, CPU)
    assert build.made_from(IMPLEMENTATION, CPU) == digest
    monkeypatch.setattr(torch, "__version__", "another")
    assert build.made_from(IMPLEMENTATION, CPU) != digest
