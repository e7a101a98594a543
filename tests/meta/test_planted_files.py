"""Files that the author of a candidate puts where the judge works: none of them is taken for a part of it."""

from __future__ import annotations

import importlib._bootstrap_external as bytecode
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from harness import discovery
from harness.candidate import candidate
from harness.report.cell import FAIL
from harness.report.report import Report
from harness.running import sandbox
from harness.running.candidate_process import Limits
from harness.running.isolation import Isolation
from harness.running.selection import Selection, slots
from spec.derived import function_of
from spec.python_files import import_named
from tests.meta.conftest import ROOT, environment
from tests.meta.tiers import START, WHOLE, first_alone

_RIGHT = """
import torch
import torch.nn.functional as F

def swiglu(gate, up):
    return F.silu(gate) * up
"""
_WRONG = _RIGHT.replace("* up", "* up * 0.5")
_SANDBOXED = pytest.mark.skipif(bool(sandbox.why_none()), reason=sandbox.why_none())


def _with_bytecode(file: Path, source: str, other: str) -> Path:
    """The file with that source, and bytecode beside it that Python takes for it without a look, made from another."""
    file.write_text(source)
    folder = file.parent / "__pycache__"
    folder.mkdir(exist_ok=True)
    code = compile(other, str(file), "exec")
    made = bytecode._code_to_hash_pyc(code, b"12345678", False)  # type: ignore[attr-defined]
    (folder / f"{file.stem}.{sys.implementation.cache_tag}.pyc").write_bytes(made)
    return file


def test_python_itself_takes_the_bytecode(tmp_path: Path) -> None:
    _with_bytecode(tmp_path / "planted.py", "print('source')", "print('bytecode')")
    command = [sys.executable, "-c", "import planted"]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert run.stdout == "bytecode\n"


@pytest.mark.parametrize("property", first_alone(["forward-parity", "no-side-effects"]))
@pytest.mark.parametrize("is_right", [False, True])
def test_the_source_of_a_candidate_is_judged(tmp_path: Path, property: str, is_right: bool) -> None:
    """A report has the digest of the source. `no-side-effects` runs in the other process, and asks for no value."""
    others = "def swiglu(gate, up): raise ValueError('from bytecode')"
    sources = (_RIGHT, others) if is_right else (_WRONG, _RIGHT)
    file = _with_bytecode(tmp_path / "kernels.py", *sources)
    selection = Selection(candidates=(f"swiglu={file}:swiglu",), dtypes=("float32",), devices=("cpu",))
    isolation = Isolation(selection, Limits(60))
    try:
        cell = isolation.judge(slots(selection)[0], property)
    finally:
        isolation.stop()
    assert (cell.verdict == FAIL) is (not is_right and property == "forward-parity"), cell.reason


def test_the_source_of_a_reference_and_of_a_contract_is_imported(tmp_path: Path) -> None:
    file = _with_bytecode(tmp_path / "slow.py", "def f(): return 'source'", "def f(): return 'bytecode'")
    assert function_of(str(file), "f")() == "source"
    assert discovery.import_file(file, "contract").f() == "source"
    found, _ = discovery.load_candidate(candidate(f"lltm={file}:f"))
    assert found() == "source"


def _judged_in(folder: Path, *options: str) -> tuple[int, str]:
    """Exit code and output of `python -m harness judge` in that folder."""
    variables = {**environment(), "PYTHONPATH": str(ROOT), "LLTM_CONFORMANCE_CACHE": str(folder.parent / "cache")}
    run = subprocess.run(
        [sys.executable, "-m", "harness", "judge", "--device=cpu", "--dtype=float32", "-k=forward_parity", *options],
        cwd=folder,
        env=variables,
        capture_output=True,
        text=True,
        check=False,
        timeout=280,
    )
    return run.returncode, run.stdout + run.stderr


#: Modules of the standard library, of packages that the judge needs, and of some that others use where they are there.
PLANTED = (
    *("argparse", "json", "queue", "pytest", "rich", "psutil", "safetensors", "torch", "numpy", "xdist", "execnet"),
    *("hypothesis", "opt_einsum", "attr", "conftest", "sitecustomize"),
)


@pytest.mark.parametrize("workers", first_alone([((),), (("-n=2",),)], START), ids=["alone", "workers"])
def test_modules_in_the_working_folder_are_not_imported(tmp_path: Path, workers: tuple[str, ...]) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "kernels.py").write_text(_WRONG)
    (folder / "pytest.ini").write_text("[pytest]\naddopts = -p planted\n")
    for name in PLANTED:
        (folder / f"{name}.py").write_text(
            f"open({str(tmp_path / 'hit')!r}, 'a').write('{name} ')\nraise SystemExit(0)\n"
        )
    code, said = _judged_in(folder, "--candidate=swiglu=kernels.py:swiglu", "--report=report.json", *workers)
    assert not (tmp_path / "hit").exists(), (tmp_path / "hit").read_text()
    assert code == 1, said
    assert [cell.verdict for cell in Report.read(folder / "report.json").cells] == [FAIL]


@pytest.mark.long(WHOLE)
def test_a_reference_may_import_what_lies_beside_it(tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text("from torch.nn.functional import silu\n")
    (tmp_path / "slow.py").write_text(
        "import torch\nfrom beside import silu\n\ndef slow(x):\n    return silu(x)\n\n"
        "def example():\n    return (torch.randn(3, 5),)\n"
    )
    (tmp_path / "fast.py").write_text("import torch\n\ndef fast(x):\n    return x * torch.sigmoid(x)\n")
    options = ("--candidate=fast.py:fast", "--reference=slow.py:slow", "--example=slow.py:example")
    code, said = _judged_in(tmp_path, *options)
    assert code == 0, said


def test_a_module_of_the_working_folder_hides_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "only_here.py").write_text("import colorsys\nVALUE = colorsys.__file__\n")
    (tmp_path / "colorsys.py").write_text("")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [path for path in sys.path if path not in ("", str(tmp_path))])
    assert str(tmp_path) not in import_named("only_here").VALUE
    del sys.modules["only_here"]


# Doors of the sandbox

_CONNECT = """
import glob, socket, sys
try:
    with socket.socket(socket.AF_UNIX) as door:
        door.connect(sys.argv[1])
    print("connected")
except OSError:
    print("refused")
print(glob.glob("/dev/pts/[0-9]*"))
"""


@_SANDBOXED
def test_no_program_outside_of_the_sandbox_listens(tmp_path: Path) -> None:
    """tmux, systemd and docker do what they are told by whoever connects; a terminal shows what is written to it."""
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(str(tmp_path / "door"))
        door.listen()
        folder = sandbox.scratch("lltm=doors")
        arguments = [sys.executable, "-c", _CONNECT, str(tmp_path / "door")]
        outside = subprocess.run(arguments, capture_output=True, text=True, check=True).stdout
        inside = subprocess.run(
            sandbox.command(arguments, folder), env=dict(os.environ), capture_output=True, text=True, check=True
        ).stdout
    assert outside.startswith("connected\n")
    assert inside == "refused\n[]\n"


@pytest.mark.parametrize("spoil", ["file", "link", "mode"])
def test_a_spoilt_scratch_folder_is_repaired(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spoil: str) -> None:
    monkeypatch.setenv("LLTM_CONFORMANCE_CACHE", str(tmp_path))
    folder = sandbox.scratch("lltm=spoilt")
    if spoil == "mode":
        folder.chmod(0)
    else:
        (folder / "tmp").rmdir()
        if spoil == "file":
            (folder / "tmp").write_text("")
        else:
            (folder / "tmp").symlink_to("/nonexistent")
    assert sandbox.scratch("lltm=spoilt") == folder
    assert (folder / "tmp").is_dir()
    assert not (folder / "tmp").is_symlink()
