"""A candidate that crashes, exits, hangs or takes all memory costs one cell; the next is judged as usual."""

from collections.abc import Iterator

import pytest

from harness.errors import UsageError
from harness.report.cell import FAIL, PASS
from harness.running.isolation import Isolation, Limits
from harness.running.selection import Selection, Slot, slots

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
"""
NAMES = ("right", "crashes", "exits", "hangs", "leaks")


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


@pytest.mark.parametrize(
    ("name", "words"),
    [("crashes", "died of SIGSEGV"), ("exits", "exited with code 0"), ("leaks", "took more than 1 GB of memory")],
)
def test_it_costs_one_cell(isolation: Isolation, by_name: dict[str, Slot], name: str, words: str) -> None:
    cell = isolation.judge(by_name[name], "gradient-subsets")
    assert cell.verdict == FAIL
    assert words in cell.reason
    assert isolation.judge(by_name["right"], "forward-parity").verdict == PASS


def test_a_hang_is_ended(selection: Selection, by_name: dict[str, Slot]) -> None:
    isolation = Isolation(selection, Limits(seconds=1))
    isolation.start()
    cell = isolation.judge(by_name["hangs"], "forward-parity")
    assert cell.verdict == FAIL
    assert "was still running after 1 s" in cell.reason
    isolation.stop()


def test_what_cannot_be_imported_is_told() -> None:
    isolation = Isolation(Selection(candidates=("lltm=json:lods",)), Limits())
    with pytest.raises(UsageError, match="did you mean 'loads'"):
        isolation.start()
