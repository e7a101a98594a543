"""Two trees: the worktree of a commit, and a worker that measures the tree it is given."""

from __future__ import annotations

import signal
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

import pytest

from harness.errors import Unavailable, UsageError
from harness.gate.matching import why_broken
from harness.gate.trees import commit_of, worktree
from harness.gate.workers import SuspectTimes, WorkerFailed, workers
from tests.meta.conftest import ROOT, environment, heeded
from tests.meta.tiers import WHOLE, first_alone


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Two commits of one file."""
    folder = tmp_path / "repository"
    folder.mkdir()
    identity = ["-c", "user.name=it", "-c", "user.email=it@example.org"]
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    for text in ("old", "new"):
        (folder / "file").write_text(text)
        subprocess.run(["git", "-C", str(folder), "add", "file"], check=True)
        subprocess.run(["git", "-C", str(folder), *identity, "commit", "-qm", text], check=True)
    return folder


def test_the_base_is_checked_out_beside_the_tree_and_removed(repository: Path) -> None:
    with worktree("HEAD~1", repository) as base:
        assert (base / "file").read_text() == "old"
        assert (repository / "file").read_text() == "new"
    assert not base.exists()
    listed = subprocess.run(
        ["git", "-C", str(repository), "worktree", "list"], capture_output=True, text=True, check=True
    )
    assert len(listed.stdout.splitlines()) == 1


_GATE = """
import sys, time
from pathlib import Path
from harness.gate.matching import why_broken
from harness.gate.trees import worktree
with worktree("HEAD", Path(sys.argv[1])) as tree:
    print(tree, flush=True)
    time.sleep(300)
"""


def _worktrees(repository: Path) -> int:
    listed = subprocess.run(
        ["git", "-C", str(repository), "worktree", "list"], capture_output=True, text=True, check=True
    )
    return len(listed.stdout.splitlines())


@pytest.mark.parametrize("ending", [signal.SIGHUP, signal.SIGTERM, signal.SIGKILL])
def test_a_gate_that_is_ended_leaves_no_worktree_for_ever(repository: Path, ending: signal.Signals) -> None:
    command = [sys.executable, "-c", _GATE, str(repository)]
    with heeded(signal.SIGHUP):
        gate = subprocess.Popen(command, cwd=ROOT, env=environment(), stdout=subprocess.PIPE, text=True)
    with gate:
        assert gate.stdout is not None
        tree = Path(gate.stdout.readline().strip())
        with worktree("HEAD", repository) as other:
            assert tree.exists(), "its gate still runs"
            assert other != tree
        gate.send_signal(ending)
    assert gate.returncode != 0, "it waited to its end"
    if ending == signal.SIGKILL:
        assert tree.exists()
        with worktree("HEAD", repository):
            assert _worktrees(repository) == 2
    assert not tree.parent.exists()
    assert _worktrees(repository) == 1


@pytest.mark.parametrize("revision", ["nowhere", "--upload-pack=x"])
def test_what_is_no_commit_is_told(repository: Path, revision: str) -> None:
    with pytest.raises(UsageError, match=f"--base was '{revision}', but should be a commit of"):
        commit_of(revision, repository)


DISCOVERY = """
from types import SimpleNamespace as Of
import torch
from harness.errors import Unavailable
cases = [Of(name="usual", sizes={"n": 4}, tags={"benchmark"}), Of(name="tail", sizes={"n": 3}, tags={"size"})]
def ordinary(sizes, draw):
    return {"input": draw.normal((sizes["n"],))}
output = Of(shape_for=lambda sizes: (sizes["n"],))
double = Of(cases=cases, case=lambda name: cases[0], ordinary=ordinary, outputs=[output], bound=lambda f: f)
backend = Of(backend=Of(devices=("cpu",), dtypes=(torch.float32,)), implementation=lambda name: name)
def operators(): return {"double": double}
def operator(name): return double
def all_backends(): return {"it": backend, "absent": Of(implementation=lambda name: None)}
def load_function(operator, backend, device):
    if backend == "nowhere":
        raise Unavailable("no such device")
    return lambda x: FACTOR * x
"""
CONTRACT = """
import torch
class Draw:
    def __init__(self, seed): self.seed = seed
    def normal(self, shape): return torch.ones(shape, dtype=torch.float64)
"""


def _tree(folder: Path, factor: str) -> Path:
    for name, text in (
        ("harness/__init__.py", ""),
        ("harness/errors.py", "class Unavailable(Exception): pass"),
        ("harness/discovery.py", f"FACTOR = {factor}\n{DISCOVERY}"),
        ("spec/__init__.py", ""),
        ("spec/contract.py", CONTRACT),
    ):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


@pytest.mark.long(WHOLE)
def test_workers_measure_each_its_own_tree(tmp_path: Path) -> None:
    """A tree with only the modules that every commit has; the measuring code is this tree's."""
    trees = [_tree(tmp_path / "base", "2"), _tree(tmp_path / "head", "None")]
    benchmark = {"operator": "double", "backend": "it", "device": "cpu", "dtype": "float32", "case": "usual"}
    way = {"phase": "forward+backward", "clock": "wall"}
    with workers(trees, threads=1) as (base, head):
        assert base.ask("hello", threads=1)["tree"] == str(trees[0])
        found = base.ask("benchmarks", devices=["cpu"], dtypes=["float32"])
        assert found == {"benchmarks": [{**benchmark, "sizes": {"n": 4}}], "broken": []}
        with pytest.raises(WorkerFailed, match="asked to time, but: RuntimeError: nothing is prepared"):
            base.ask("time", calls=1)
        base.ask("prepare", benchmark={**benchmark, **way})
        assert base.ask("time", calls=2) > 0
        assert base.ask("memory") > 0
        with pytest.raises(Unavailable, match="no such device"):
            base.ask("prepare", benchmark={**benchmark, **way, "backend": "nowhere"})
        base.ask("prepare", benchmark={**benchmark, **way, "clock": "graph"})
        with pytest.raises(Unavailable, match="CUDA graphs exist on the device cuda only"):
            base.ask("time", calls=1)
        with pytest.raises(WorkerFailed, match=f"the worker of {trees[1]} .*TypeError"):
            head.ask("prepare", benchmark={**benchmark, **way})


PATCHED = "import time\nreal = time.perf_counter\ntime.perf_counter = lambda: {} * real()\n"


@pytest.mark.parametrize(("times", "noticed"), first_alone([(0.1, True), (None, False), (2.0, True)]))
def test_a_worker_that_patches_its_clock_is_noticed(tmp_path: Path, times: float | None, noticed: bool) -> None:
    tree = _tree(tmp_path / "head", "2")
    if times is not None:
        errors = tree / "harness" / "errors.py"
        errors.write_text(f"{errors.read_text()}\n{PATCHED.format(times)}")
    benchmark = {"operator": "double", "backend": "it", "device": "cpu", "dtype": "float32", "case": "usual"}
    with workers([tree], threads=1) as (worker,):
        worker.ask("prepare", benchmark={**benchmark, "phase": "forward", "clock": "wall"})
        for _ in range(7):
            worker.ask("time", calls=10000)
        with pytest.raises(SuspectTimes, match=f"the worker of {tree} reported") if noticed else nullcontext():
            worker.hold_times("cpu")


_BACKENDS = """
import importlib, pkgutil
import backends
def all_backends():
    found = {}
    for info in pkgutil.iter_modules(backends.__path__):
        importlib.import_module(f"backends.{info.name}")
        found[info.name.replace("_", "-")] = backend
    return found
"""


def test_a_backend_of_base_that_does_not_import_stops_no_other(tmp_path: Path) -> None:
    tree = _tree(tmp_path / "base", "2")
    discovery = tree / "harness" / "discovery.py"
    discovery.write_text(discovery.read_text() + _BACKENDS)
    for name, text in (("", ""), ("it", ""), ("not_here", "import nothing_of_that_name")):
        (tree / "backends" / name).mkdir()
        (tree / "backends" / name / "__init__.py").write_text(text)
    with workers([tree], threads=1) as (base,):
        found = base.ask("benchmarks", devices=["cpu"], dtypes=["float32"])
        assert [benchmark["backend"] for benchmark in found["benchmarks"]] == ["it"]
        (broken,) = found["broken"]
        assert (broken["operator"], broken["backend"]) == (None, "not-here")
        assert "backends.not_here does not import: ModuleNotFoundError: No module named" in broken["reason"]
        base.ask("prepare", benchmark={**found["benchmarks"][0], "phase": "forward", "clock": "wall"})
    ours = {"operator": "double", "backend": "not-here", "device": "cpu", "dtype": "float32", "case": "usual"}
    assert why_broken(ours, found["broken"]) == broken["reason"]
    assert why_broken({**ours, "backend": "it"}, found["broken"]) == ""
