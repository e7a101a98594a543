"""A candidate that crashes, exits, hangs or takes all memory costs one cell; the next is judged as usual."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import harness
from harness.candidate import Candidate
from harness.errors import UsageError
from harness.report.cell import FAIL, PASS
from harness.running import sandbox
from harness.running.candidate_process import CandidateProcess, Limits, started
from harness.running.isolation import Isolation
from harness.running.selection import Selection, Slot, slots
from tests.meta.tiers import first_alone

CANDIDATES = """
import ctypes, os, time
import torch
import torch.nn.functional as F

def right(input, weights, bias, old_h, old_cell):
    z_i, z_o, z_k = F.linear(torch.cat([old_h, input], dim=1), weights, bias).chunk(3, 1)
    new_cell = old_cell + F.elu(z_k) * torch.sigmoid(z_i)
    return torch.tanh(new_cell) * torch.sigmoid(z_o), new_cell

def crashes(*inputs):
    ctypes.string_at(0)

def exits(*inputs):
    os._exit(0)

def hangs(*inputs):
    time.sleep(3600)

kept = []

def leaks(*inputs):
    kept.append(torch.ones(2**26))
    return right(*inputs)

def loses(*inputs):
    # As after an assertion in a kernel: torch has used a device, and nothing that uses it works any more.
    torch.cuda._initialized = True
    raise RuntimeError("CUDA error: device-side assert triggered")

def crashes_if_wrong(*inputs):
    if inputs[0].shape[0] != inputs[3].shape[0]:
        ctypes.string_at(0)
    return right(*inputs)

def rms_norm(input, weight=None, residual=None, *, eps=1e-6):
    total = input if residual is None else input + residual
    output = F.rms_norm(total, total.shape[-1:], weight, eps)
    return output if residual is None else (output, total)
"""
NAMES = ("right", "crashes", "exits", "hangs", "leaks", "loses", "crashes_if_wrong")


@pytest.fixture(scope="module")
def selection(tmp_path_factory: pytest.TempPathFactory) -> Selection:
    file = tmp_path_factory.mktemp("candidates") / "kernels.py"
    file.write_text(CANDIDATES)
    return Selection(candidates=tuple(f"lltm={file}:{name}" for name in NAMES), dtypes=("float32",), devices=("cpu",))


@pytest.fixture(scope="module")
def by_name(selection: Selection) -> dict[str, Slot]:
    return {slot.backend: slot for slot in slots(selection)}


@pytest.fixture
def isolation(selection: Selection) -> Iterator[Isolation]:
    made = Isolation(selection, Limits(seconds=60, memory=2**30))
    yield made
    made.stop()


def test_arguments_are_passed_by_name(tmp_path: Path) -> None:
    """The contract of rms_norm passes eps by its name, and leaves out what stands before it."""
    file = tmp_path / "kernels.py"
    file.write_text(CANDIDATES)
    selection = Selection(candidates=(f"rms_norm={file}:rms_norm",), dtypes=("float32",), devices=("cpu",))
    isolation = Isolation(selection, Limits(seconds=60))
    cell = isolation.judge(slots(selection)[0], "forward-parity")
    isolation.stop()
    assert cell.verdict == PASS, cell.reason
    assert len(cell.figures["forms"]) > 2


@pytest.mark.parametrize(
    ("name", "words"),
    [("crashes", "died of SIGSEGV"), ("exits", "exited with code 0"), ("leaks", "took more than 1 GB of memory")],
)
def test_it_costs_one_cell(isolation: Isolation, by_name: dict[str, Slot], name: str, words: str) -> None:
    cell = isolation.judge(by_name[name], "gradient-subsets")
    assert cell.verdict == FAIL
    assert words in cell.reason
    assert isolation.judge(by_name["right"], "forward-parity").verdict == PASS


@pytest.mark.parametrize("property", first_alone(["forward-parity", "survives-wrong-calls", "global-state"]))
def test_a_process_that_lost_its_device_is_ended(isolation: Isolation, by_name: dict[str, Slot], property: str) -> None:
    """Both the process of the candidate and the one that judges beside it; the next cell has new ones."""
    cell = isolation.judge(by_name["loses"], property)
    assert cell.verdict == FAIL
    assert "process could use its CUDA device no more" in cell.reason
    for process in (isolation._outside, isolation._inside):
        inner = process._process if isinstance(process, CandidateProcess) else process
        assert inner is None or not inner.alive
    assert isolation.judge(by_name["right"], property).verdict == PASS


def test_the_wrong_call_that_ends_a_process_is_named(isolation: Isolation, by_name: dict[str, Slot]) -> None:
    cell = isolation.judge(by_name["crashes_if_wrong"], "survives-wrong-calls")
    assert cell.verdict == FAIL
    assert "died of SIGSEGV while survives-wrong-calls was judged" in cell.reason
    assert "[a call with input with size 4 for 3 in dimension 0]" in cell.reason, cell.reason


def test_a_hang_is_ended(selection: Selection, by_name: dict[str, Slot]) -> None:
    isolation = Isolation(selection, Limits(seconds=2))
    cell = isolation.judge(by_name["hangs"], "forward-parity")
    assert cell.verdict == FAIL
    assert "was still running after 2 s in forward" in cell.reason
    isolation.stop()


def test_a_function_that_is_not_there_is_told() -> None:
    selection = Selection(candidates=("lltm=json:lods",), dtypes=("float32",), devices=("cpu",))
    isolation = Isolation(selection, Limits())
    with pytest.raises(UsageError, match="did you mean 'loads'"):
        isolation.imports(slots(selection)[0])
    isolation.stop()


def test_the_judges_own_work_does_not_count(by_name: dict[str, Slot]) -> None:
    """Only requests take from the time limit of a cell: an oracle may take longer than the candidate has."""
    source = by_name["right"].source
    assert isinstance(source, Candidate)
    process = CandidateProcess(source, "cpu", Limits(seconds=3))
    process.declared()
    process.begin()
    time.sleep(4)
    assert process.ask({"do": "ready"}, {})[0].keys() == {"id"}
    process.stop()


@pytest.mark.parametrize("property", ["forward-parity", "memory"])
def test_the_process_has_only_its_scratch_folder(
    property: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The outer process and the inner one: a write anywhere else fails, and no variable tells of a test."""
    if sandbox.why_none():
        pytest.skip(sandbox.why_none())
    monkeypatch.setenv("PYTEST_CURRENT_TEST", "this one")
    file = tmp_path / "writes.py"
    file.write_text(WRITES.format(outside=tmp_path / "outside.txt", suite=Path(harness.__file__).parent / "x.py"))
    selection = Selection(candidates=(f"lltm={file}:writes",), dtypes=("float32",), devices=("cpu",))
    isolation = Isolation(selection, Limits())
    cell = isolation.judge(slots(selection)[0], property)
    isolation.stop()
    assert "wrote: scratch; seen: none" in cell.reason
    assert not (tmp_path / "outside.txt").exists()


WRITES = """
import os, tempfile
from pathlib import Path

def writes(*inputs):
    wrote = []
    places = {{"outside": "{outside}", "suite": "{suite}", "scratch": Path(tempfile.gettempdir()) / "own.txt"}}
    for name, place in places.items():
        try:
            Path(place).write_text("was here")
            wrote.append(name)
        except OSError:
            pass
    seen = [name for name in os.environ if name.startswith(("PYTEST", "LLTM"))]
    raise RuntimeError(f"wrote: {{', '.join(wrote)}}; seen: {{', '.join(seen) or 'none'}}")
"""


@pytest.mark.skipif(bool(sandbox.why_none()), reason="bubblewrap is not installed or not permitted here")
def test_a_socket_that_is_gone_is_hidden_no_more(by_name: dict[str, Slot], monkeypatch: pytest.MonkeyPatch) -> None:
    """bubblewrap makes no sandbox where what it shall hide is gone; the next one hides what is there then."""
    asked = []

    def doors() -> list[str]:
        asked.append(None)
        return ["/no/such/door"] if len(asked) == 1 else []

    monkeypatch.setattr(sandbox, "_doors", doors)
    source = by_name["right"].source
    assert isinstance(source, Candidate)
    process = started(source.text, Limits(seconds=60))
    process.stop()
    assert len(asked) == 2
