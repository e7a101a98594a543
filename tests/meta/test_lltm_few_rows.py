"""The forward of LLTM for few rows (`cuda_fused/csrc/lltm_few_rows.cu`), emulated, against loops in double."""

from __future__ import annotations

from pathlib import Path

import pytest

from backends.cuda_fused.lltm import CSRC
from tests.meta.emulated_driver import built, ran, with_fault
from tests.meta.tiers import ZOO, first_alone

DRIVER = "lltm_few_rows.cpp"

#: One worker, which builds the right driver once.
pytestmark = pytest.mark.xdist_group("lltm_few_rows")

#: KiB of shared memory that a block may ask for.
H200, ADA = 227, 99

#: dtype, batch, input_features, state_size, and whether the gates are wanted.
RIGHT = {
    "one row": "bfloat16 1 8 8 1",
    "a row less than a tile": "float16 15 24 16 1",
    "one tile": "bfloat16 16 32 32 1",
    "a row more than a tile": "float16 17 40 8 1",
    "two tiles": "bfloat16 32 8 24 0",
    "a row more than two tiles": "bfloat16 33 16 16 1",
    "four tiles": "float16 64 64 8 0",
    "no features": "bfloat16 5 0 64 1",
    "a round of all warps": "float16 3 128 128 1",
    "a term more than a round": "float16 3 136 128 1",
    "as many rounds as are on their way": "bfloat16 2 1528 8 1",
    "more rounds": "bfloat16 2 1800 8 1",
    "twice as many rounds, and more": "float16 20 3400 16 0",
}

#: What the kernel does not take.
OTHERS = {
    "too many rows": "bfloat16 65 64 64 1",
    "features that are no vectors": "bfloat16 4 60 64 1",
    "a state of no vectors": "float16 4 64 60 1",
    "weights that are read once anyway": "float16 4 4096 4096 1",
}

#: A text, what is there instead, the call, and what the driver prints.
FAULTS = {
    "a wait for a round too few": (
        "wait_for_groups<ahead - 1>()",
        "wait_for_groups<ahead>()",
        "bfloat16 2 1800 8 1",
        "wrong: gates",
    ),
    "a round has the pieces of the one before": (
        "begin_round(round + ahead, place);",
        "begin_round(round + ahead - 1, place);",
        "bfloat16 2 1800 8 1",
        "wrong: gates",
    ),
    "the state is read where the features are": (
        "is_h = column < state_size",
        "is_h = column <= state_size",
        "bfloat16 1 8 8 1",
        "wrong: gates",
    ),
    "rows beyond the end are written": (
        "if (row >= sizes.batch) continue;",
        "",
        "bfloat16 15 24 16 1",
        "wrong: rows beyond the end",
    ),
    "the lower half of a tile is the upper": (
        "k / 2 * kTileRows / 2 + g",
        "k / 4 * kTileRows / 2 + g",
        "bfloat16 16 32 32 1",
        "wrong: gates",
    ),
    "a warp is left out": ("other < kWarps", "other < kWarps - 1", "float16 3 512 128 0", "wrong: new_cell"),
    "sums are written while pieces arrive": (
        "  __syncthreads();  // nobody's pieces are needed any more\n",
        "",
        "bfloat16 64 264 8 1",
        "wrong: gates",
    ),
}


def _said(program: Path, call: str, memory: int = H200) -> str:
    (line,) = ran(program, *call.split(), str(memory))
    return line


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(tmp_path_factory.mktemp("lltm_few_rows"), DRIVER, "-O1", include=[CSRC])


@pytest.mark.parametrize("memory", [H200, ADA])
@pytest.mark.parametrize("what", RIGHT)
def test_few_rows_are_right(driver: Path, what: str, memory: int) -> None:
    """With less memory fewer rounds are on their way."""
    assert _said(driver, RIGHT[what], memory) == "right"


@pytest.mark.parametrize("what", OTHERS)
def test_other_sizes_have_other_products(driver: Path, what: str) -> None:
    assert _said(driver, OTHERS[what]) == "other products"


@pytest.mark.parametrize("what", first_alone(FAULTS, ZOO))
def test_a_fault_is_noticed(tmp_path: Path, what: str) -> None:
    text, instead, call, said = FAULTS[what]
    changed = with_fault(tmp_path, CSRC, "lltm_few_rows.cu", text, instead)
    assert _said(built(tmp_path, DRIVER, "-O0", include=[changed]), call) == said
