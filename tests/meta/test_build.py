"""Each content is built once; killed, hanging and parallel builders leave the cache valid."""

from __future__ import annotations

import os
import pwd
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from backends.base import CPU, CUDA_EMULATED, CompiledOperator
from harness.building import build, cache
from harness.errors import Broken, CannotBuild, Unavailable, UsageError
from harness.properties import all_properties
from harness.report.cell import NO_EVIDENCE
from harness.running import sandbox
from harness.running.selection import Selection, slots
from tests.meta.conftest import ROOT, FakeCompiler, environment

#: The program of a second process: the same build as `_operator` describes.
_BUILDER = """
import sys
from pathlib import Path
from backends.base import CompiledOperator
from harness.building import build, cache
print(build.build(CompiledOperator("op", "meta_fake", (Path(sys.argv[1]),)), "cpu"))
"""


def _alone(operator: CompiledOperator) -> CompiledOperator:
    return replace(operator, include_dirs=())


def _start(operator: CompiledOperator) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", _BUILDER, str(operator.sources[0])]
    return subprocess.Popen(command, cwd=ROOT, env=environment(), stdout=subprocess.PIPE, text=True)


def _eventually(holds: Callable[[], object]) -> bool:
    """Whether the condition becomes true within a generous time."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        if holds():
            return True
        time.sleep(0.02)
    return False


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_the_second_build_comes_from_the_cache(operator: CompiledOperator, fake_compiler: FakeCompiler) -> None:
    first = build.build(operator, CPU)
    assert first.exists()
    assert fake_compiler.count() == 2, "one source, one link"
    assert build.build(operator, CPU) == first
    assert fake_compiler.count() == 2, "the compiler was called again"


def test_the_key_depends_on_everything_that_the_library_depends_on(
    operator: CompiledOperator,
    fake_compiler: FakeCompiler,
    monkeypatch: pytest.MonkeyPatch,
    fresh_compilers: Callable[[], None],
) -> None:
    seen = {"at first": build.plan(operator, CPU).key}
    assert build.plan(operator, CPU).key == seen["at first"], "the key is not stable"

    def changed(what: str, operator: CompiledOperator = operator, device: str = CPU) -> None:
        key = build.plan(operator, device).key
        same = [name for name, other in seen.items() if other == key]
        assert not same, f"with another {what} the key is still that of {same}"
        seen[what] = key

    source, header = operator.sources[0], operator.include_dirs[0] / "op.h"
    changed("flag", replace(operator, flags=("-O1",)))
    changed("namespace", replace(operator, namespace="meta_other"))
    changed("device", device=CUDA_EMULATED)
    changed("set of sanitizers", replace(operator, flags=build.SANITIZERS))
    source.write_text("int meta() { return 2; }\n")
    changed("source")
    header.write_text("// two\n")
    changed("header")
    (header.parent / "deep").mkdir()
    (header.parent / "deep" / "kernel.cuh").write_text("// three\n")
    changed("header in a folder below")
    (source.parent / "beside.hpp").write_text("// four\n")
    changed("header beside the source")
    monkeypatch.setattr(torch, "__version__", "99.0")
    changed("torch")
    monkeypatch.setattr(torch.version, "git_version", "0" * 40)
    changed("commit of torch")
    fake_compiler.path.write_text(fake_compiler.path.read_text().replace("fake 1.0", "fake 1.1"))
    fresh_compilers()
    changed("version of the compiler")
    other = fake_compiler.path.with_name("g++-99")
    other.symlink_to(fake_compiler.path)
    monkeypatch.setenv("CXX", str(other))
    fresh_compilers()
    changed("compiler")


@pytest.mark.parametrize("damage", ["empty", "cut", "changed", "planted", "without-digest"])
def test_a_damaged_library_is_built_again(operator: CompiledOperator, fake_compiler: FakeCompiler, damage: str) -> None:
    """Loading it would end the process, or run the code of other sources."""
    library = build.build(operator, CPU)
    whole = library.read_bytes()
    digest = library.with_suffix(".blake2b")
    if damage == "planted":
        operator.sources[0].write_text("int meta() { return 2; }\n")
        other = build.build(operator, CPU)
        operator.sources[0].write_text("int meta() { return 1; }\n")
        library.write_bytes(other.read_bytes())
        digest.write_bytes(other.with_suffix(".blake2b").read_bytes())
    elif damage == "without-digest":
        digest.unlink()
    else:
        library.write_bytes({"empty": b"", "cut": whole[:-1], "changed": whole[:-1] + b"x"}[damage])
    calls = fake_compiler.count()
    assert not build.is_built(operator, CPU)
    assert build.build(operator, CPU) == library
    assert fake_compiler.count() == calls + 2
    assert library.read_bytes() == whole
    assert build.is_built(operator, CPU)


@pytest.mark.parametrize(
    ("compiler", "says"),
    [
        (
            "echo 'cannot write x.o: No space left on device'; exit 1",
            "the disk of .* is full; free space .*CACHE to another",
        ),
        ("kill -9 $$", "the compiler was killed; the kernel kills it if memory runs out: free memory"),
        ("echo 'g++: fatal error: Killed signal terminated program cc1plus'; exit 1", "the compiler was killed"),
        ("echo 'virtual memory exhausted: Cannot allocate memory'; exit 1", "the compiler had no memory left"),
    ],
    ids=["disk", "killed", "part-killed", "memory"],
)
def test_a_machine_that_fails_is_no_fault_of_the_backend(
    operator: CompiledOperator, fake_compiler: FakeCompiler, compiler: str, says: str
) -> None:
    text = fake_compiler.path.read_text().splitlines()
    fake_compiler.path.write_text("\n".join([*text[:2], compiler, ""]))
    with pytest.raises(CannotBuild, match=f"meta_fake-op-cpu cannot be built: {says}"):
        build.load(operator, CPU)


@pytest.mark.usefixtures("fake_compiler")
def test_a_cache_that_cannot_be_written_to_is_told(
    operator: CompiledOperator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file in place of a folder stands for a read-only file system: a test may run as root."""
    (tmp_path / "file").touch()
    monkeypatch.setenv("LLTM_CONFORMANCE_CACHE", str(tmp_path / "file" / "cache"))
    says = (
        "because .*file/cache/.* cannot be written to: Not a directory; .* set LLTM_CONFORMANCE_CACHE to another folder"
    )
    with pytest.raises(CannotBuild, match=says):
        build.build(operator, CPU)
    with pytest.raises(UsageError, match=r"the scratch folder .* cannot be written to: Not a directory; set LLTM"):
        sandbox.scratch("lltm=k.py:f")


@pytest.mark.usefixtures("fake_compiler")
def test_what_cannot_be_built_here_has_no_evidence(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise CannotBuild("the disk is full")

    monkeypatch.setattr(build, "load", fails)
    (slot,) = slots(Selection(("mlp",), ("aten-cpp",), ("cpu",), ("float32",)))
    cell = slot.judge(all_properties()["sizes"])
    assert (cell.verdict, cell.reason) == (NO_EVIDENCE, "the disk is full")


def test_a_user_without_a_home_folder_has_a_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody(_: int) -> None:
        raise KeyError("uid not found")

    for name in ("LLTM_CONFORMANCE_CACHE", "XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(pwd, "getpwuid", nobody)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    folder = cache.cache_root()
    assert folder == tmp_path / f"lltm-conformance-{os.getuid()}"
    assert folder.stat().st_mode & 0o077 == 0
    folder.rmdir()
    folder.symlink_to(tmp_path)
    monkeypatch.setattr(os, "getuid", lambda: 12345)
    folder.rename(tmp_path / "lltm-conformance-12345")
    with pytest.raises(Unavailable, match="belongs to another user; set LLTM_CONFORMANCE_CACHE"):
        cache.cache_root()


def test_a_killed_builder_is_in_nobodys_way(operator: CompiledOperator, fake_compiler: FakeCompiler) -> None:
    operator = _alone(operator)
    fake_compiler.hang.touch()
    killed = _start(operator)
    try:
        assert _eventually(fake_compiler.hanging), "the builder never started to compile"
    finally:
        killed.send_signal(signal.SIGKILL)
        killed.communicate()
    fake_compiler.hang.unlink()
    orphans = fake_compiler.hanging()
    library = build.build(operator, CPU)  # while the compiler of the killed builder still hangs
    for pid in orphans:
        os.kill(pid, signal.SIGKILL)
    assert library.exists()
    left = sorted(path.name for path in library.parent.iterdir())
    assert left == ["build.log", "lock", f"{library.stem}.blake2b", library.name], f"the killed builder left {left}"


def test_parallel_builders_compile_once(operator: CompiledOperator, fake_compiler: FakeCompiler) -> None:
    builders = [_start(_alone(operator)) for _ in range(2)]
    libraries = {builder.communicate(timeout=120)[0].strip() for builder in builders}
    assert [builder.returncode for builder in builders] == [0, 0]
    assert len(libraries) == 1
    assert Path(libraries.pop()).exists()
    assert fake_compiler.count() == 2, "one source, one link"


def test_a_compiler_that_hangs_is_ended_with_its_children(
    operator: CompiledOperator, fake_compiler: FakeCompiler, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build, "TIMEOUT", 2.0)
    fake_compiler.hang.touch()
    with pytest.raises(Broken, match=r"meta_fake-op-cpu was still compiling after 2 s and was ended"):
        build.build(operator, CPU)
    (pid,) = fake_compiler.hanging()
    assert _eventually(lambda: not _runs(pid)), "ninja was ended, but not the compiler that it had started"


@pytest.mark.usefixtures("fake_compiler")
def test_a_lock_that_is_not_released_is_told(operator: CompiledOperator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "TIMEOUT", 0.1)
    folder = build.plan(operator, CPU).folder
    folder.mkdir(parents=True)
    with build.FileLock(folder / "lock"), pytest.raises(Broken, match=r"another builder held .*lock for 0 s; end it"):
        build.build(operator, CPU)


@pytest.mark.usefixtures("cache_root")
@pytest.mark.parametrize(
    ("compiler", "says"),
    [("no-such-g++", "no C\\+\\+ compiler: no-such-g\\+\\+ is not on PATH"), ("false", "/false does not run")],
)
def test_without_a_compiler_nothing_is_broken(
    operator: CompiledOperator,
    monkeypatch: pytest.MonkeyPatch,
    fresh_compilers: Callable[[], None],
    compiler: str,
    says: str,
) -> None:
    monkeypatch.setenv("CXX", compiler)
    fresh_compilers()
    with pytest.raises(Unavailable, match=says):
        build.load(operator, CPU)
