"""Shared by the tests of the harness: running a command line, an empty build cache, a fake compiler."""

from __future__ import annotations

import functools
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from backends.base import CompiledOperator
from harness.building import build
from harness.building.cache import expected_root
from harness.judging import stored
from harness.running import forking
from tests.meta.served import Commands

ROOT = Path(__file__).parents[2]

Run = Callable[..., subprocess.CompletedProcess[str]]


@contextmanager
def heeded(*numbers: signal.Signals) -> Iterator[None]:
    """What is started in this block heeds these signals, though a shell or nohup has them ignored here."""
    before = [signal.signal(number, signal.SIG_DFL) for number in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)


def environment(**changes: str) -> dict[str, str]:
    """This process's environment without the variables of an outer pytest or coverage run."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("PYTEST_", "COV_"))}
    return {**kept, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT), **changes}


@pytest.fixture(autouse=True)
def _variables_as_before() -> Iterator[None]:
    """A test leaves the environment to the next one as it was: `judge.main` sets what its workers shall find there."""
    before = dict(os.environ)
    yield
    for name in {name for name, _ in before.items() ^ os.environ.items()} - {"PYTEST_CURRENT_TEST"}:
        if name in before:
            os.environ[name] = before[name]
        else:
            del os.environ[name]


@pytest.fixture(scope="session")
def _commands() -> Iterator[Commands | None]:
    """The process from which this worker's commands are forked, where that can be."""
    if not forking.AVAILABLE:
        yield None
        return
    commands = Commands(ROOT, environment())
    yield commands
    commands.close()


@pytest.fixture(scope="session")
def python_in(_commands: Commands | None) -> Run:
    """Run `python ARGUMENTS` in the folder that is the first argument, and wait for its end.

    It is forked if `Commands` can: none of the tests that take this fixture is about the start of a process.
    """

    def run(folder: object, *arguments: object, **changes: str) -> subprocess.CompletedProcess[str]:
        words, variables, place = [str(word) for word in arguments], environment(**changes), Path(str(folder))
        if _commands is not None and _commands.can(words, variables):
            return _commands.run(words, place, variables, 300)
        command = [sys.executable, *words]
        return subprocess.run(
            command, cwd=place, env=variables, capture_output=True, text=True, check=False, timeout=300
        )

    return run


@pytest.fixture(scope="session")
def python(python_in: Run) -> Run:
    """Run `python ARGUMENTS` in the project's folder, and wait for its end."""
    return functools.partial(python_in, ROOT)


@pytest.fixture(scope="session")
def conformance(python: Run) -> Run:
    """Run `pytest tests/conformance ARGUMENTS` in a separate process; the first argument selects properties."""

    def run(properties: str, *arguments: object, **changes: str) -> subprocess.CompletedProcess[str]:
        files = [f"tests/conformance/test_properties.py::test_{name}" for name in properties.split()]
        quiet = ["-p", "no:cacheprovider", "-q", "--no-header"]
        return python("-m", "pytest", *files, *quiet, *arguments, **changes)

    return run


@pytest.fixture
def with_the_store() -> Iterator[None]:
    """What is expected of the calls of a test is computed once for all processes, and for the conformance run."""
    with stored.used(expected_root()):
        yield


@pytest.fixture
def fresh_compilers(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], None]]:
    """Forget which compilers were found: now, at each call, and after the test."""

    def forget() -> None:
        build.host_compiler.cache_clear()
        build.compiler_version.cache_clear()

    forget()
    yield forget
    monkeypatch.undo()
    forget()


@pytest.fixture
def cache_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache of builds for this test alone."""
    root = tmp_path / "cache"
    monkeypatch.setenv("LLTM_CONFORMANCE_CACHE", str(root))
    return root


#: Fixtures of a module that take 10 to 50 s to make: their tests go to one worker, or each worker would make its own.
_DEAR = frozenset(
    {
        "accidents",
        "all_pages",
        "built",
        "drawn_of_every",
        "installed",
        "judged",
        "on_cpu",
        "ranks",  # has on_cpu
        "record",
        "site",
        "server",
        "small_run",
        "there",
        "tree",
    }
)


def pytest_configure(config: pytest.Config) -> None:
    """Have pytest-xdist keep the order below; it would begin with the groups of most tests, which end soon."""
    if hasattr(config.option, "loadscopereorder"):
        config.option.loadscopereorder = False


@pytest.hookimpl(tryfirst=True)  # pytest-xdist reads the groups in the same hook, before the hooks of a conftest
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Group the tests of a dear fixture by their module, for `--dist loadgroup`, and begin with what takes longest.

    The tests of contracts come last: each takes milliseconds, so that no worker is without work at the end.
    """
    for item in items:
        if isinstance(item, pytest.Function) and _DEAR.intersection(item.fixturenames):
            item.add_marker(pytest.mark.xdist_group(item.path.stem))
    items.sort(key=_turn)


def _turn(item: pytest.Item) -> int:
    if item.path.is_relative_to(ROOT / "tests" / "spec"):
        return 2
    return 0 if item.get_closest_marker("xdist_group") else 1


@dataclass(frozen=True)
class FakeCompiler:
    """A compiler that writes a word into each file, counts its calls, and hangs while the file `hang` exists."""

    path: Path
    hang: Path
    calls: Path

    def count(self, what: str = "") -> int:
        """The number of calls that had `what` among their arguments."""
        return sum(what in line for line in self.calls.read_text().splitlines()) if self.calls.exists() else 0

    def hanging(self) -> list[int]:
        """Process ids of the calls that hung."""
        pids = self.path.with_name("pids")
        return [int(line) for line in pids.read_text().split()] if pids.exists() else []


_FAKE = """#!/bin/sh
if [ "$1" = --version ]; then echo "fake 1.0"; exit 0; fi
echo "$@" >> '{calls}'
if [ -e '{hang}' ]; then echo $$ >> '{pids}'; exec sleep 600; fi
while [ $# -gt 0 ]; do if [ "$1" = -o ]; then out="$2"; fi; shift; done
echo code > "$out"
"""


@pytest.fixture
def fake_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> FakeCompiler:
    """`$CXX` is a fake compiler, so that a test of keys and locks takes no time."""
    for name in ("cache_root", "fresh_compilers"):
        request.getfixturevalue(name)
    folder = tmp_path / "fake"
    folder.mkdir()
    fake = FakeCompiler(folder / "c++", folder / "hang", folder / "calls")
    fake.path.write_text(_FAKE.format(calls=fake.calls, hang=fake.hang, pids=folder / "pids"))
    fake.path.chmod(0o755)
    monkeypatch.setenv("CXX", str(fake.path))
    return fake


@pytest.fixture
def operator(tmp_path: Path) -> CompiledOperator:
    """One source without dependencies, and one folder of headers."""
    source, include = tmp_path / "src" / "op.cpp", tmp_path / "include"
    source.parent.mkdir()
    include.mkdir()
    source.write_text("int meta() { return 1; }\n")
    (include / "op.h").write_text("// one\n")
    return CompiledOperator("op", "meta_fake", (source,), (include,))
