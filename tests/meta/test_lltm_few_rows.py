"""The forward of LLTM for few rows (`cuda_fused/csrc/lltm_few_rows*.cu`), emulated, against loops in double."""

from __future__ import annotations

from pathlib import Path

import pytest

from backends.cuda_fused.lltm import CSRC
from tests.meta.emulated_driver import built, ran, with_fault
from tests.meta.tiers import ZOO, first_alone

DRIVER = "lltm_few_rows.cpp"
HALVES, FLOATS = "lltm_few_rows.cu", "lltm_few_rows_float.cu"

#: One worker, which builds the right driver once.
pytestmark = pytest.mark.xdist_group("lltm_few_rows")

#: KiB of shared memory that a block may ask for, and multiprocessors. With one of them, a block has all rows.
DEVICES = {"H200": (227, 132), "Ada": (99, 128), "one multiprocessor": (227, 1)}

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
    "floats, the least rows": "float32 8 8 8 1",
    "floats, a row less than the fewest": "float32 15 24 16 1",
    "floats, a row more than the fewest": "float32 17 40 8 1",
    "floats, a row more than that twice": "float32 33 16 16 0",
    "floats, the most rows": "float32 64 64 8 1",
    "floats, no features": "float32 9 0 64 1",
    "floats, a round of all warps": "float32 10 64 64 1",
    "floats, terms more than a round": "float32 11 72 64 1",
    "floats, as many rounds as are on their way": "float32 12 632 8 1",
    "floats, more rounds": "float32 64 1000 8 1",
}

#: What the kernel does not take.
OTHERS = {
    "too many rows": "bfloat16 65 64 64 1",
    "features that are no vectors": "bfloat16 4 60 64 1",
    "a state of no vectors": "float16 4 64 60 1",
    "weights that are read once anyway": "float16 4 4096 4096 1",
    "weights for the fewest rows": "float16 17 1024 1024 1",
    "weights for few rows": "bfloat16 33 512 1024 1",
    "too few rows of floats": "float32 7 64 64 1",
    "too many rows of floats": "float32 65 64 64 1",
    "floats of half a vector": "float32 14 60 64 1",
}

#: A file, a text, what is there instead, the call, and what the driver prints.
FAULTS = {
    "a wait for a round too few": (
        *(HALVES, "wait_for_groups<ahead - 1>()", "wait_for_groups<ahead>()"),
        *("bfloat16 2 1800 8 1", "wrong: gates"),
    ),
    "a round has the pieces of the one before": (
        *(HALVES, "begin_round(round + ahead, place);", "begin_round(round + ahead - 1, place);"),
        *("bfloat16 2 1800 8 1", "wrong: gates"),
    ),
    "the state is read where the features are": (
        *("lltm_few_rows.h", "column < sizes.state_size", "column <= sizes.state_size"),
        *("bfloat16 1 8 8 1", "wrong: gates"),
    ),
    "rows beyond the end are written": (
        *("lltm_few_rows.h", "if (row < sizes.batch) body(own, row);", "body(own, row);"),
        *("bfloat16 15 24 16 1", "wrong: rows beyond the end"),
    ),
    "the lower half of a tile is the upper": (
        *(HALVES, "k / 2 * kTileRows / 2 + g", "k / 4 * kTileRows / 2 + g"),
        *("bfloat16 16 32 32 1", "wrong: gates"),
    ),
    "a warp is left out": (
        *("lltm_few_rows.h", "warp < kWarps", "warp < kWarps - 1"),
        *("float16 3 512 128 0", "wrong: new_cell"),
    ),
    "sums are written while pieces arrive": (
        *(HALVES, "  __syncthreads();  // nobody's pieces are needed any more\n", ""),
        *("bfloat16 64 264 8 1", "wrong: gates"),
    ),
    "floats: a wait for a round too few": (
        *(FLOATS, "wait_for_groups<ahead - 1>()", "wait_for_groups<ahead>()"),
        *("float32 64 1000 8 1", "wrong: gates"),
    ),
    "floats: the copies of other lanes are not waited for": (
        *(FLOATS, "    __syncwarp();  // the copies of all lanes are there\n", ""),
        *("float32 64 1000 8 1", "wrong: gates"),
    ),
    "floats: a round overwrites what is still read": (
        *(FLOATS, "    __syncwarp();  // all lanes have read what the next round overwrites\n", ""),
        *("float32 64 1000 8 1", "wrong: gates"),
    ),
    "floats: beyond the last column there are the next numbers": (
        *(FLOATS, "is_there = wanted < columns;", "is_there = true;"),
        *("float32 11 72 64 1", "wrong: gates"),
    ),
    "floats: every group has the first rows": (
        *(FLOATS, "first_row = sizes.row_group() * rows;", "first_row = 0;"),
        *("float32 33 16 16 1", "wrong: gates"),
    ),
    "floats: a piece is read where it was not exchanged": (
        *(
            FLOATS,
            "left[r] = own.left.at(r * kRowLanes + row_lane, piece);",
            "left[r] = own.left.pieces[r * kRowLanes + row_lane][piece];",
        ),
        *("float32 9 0 64 1", "wrong: gates"),
    ),
    "floats: gates are exchanged": (
        *(FLOATS, "shared.sums[warp][own / kStates]", "shared.sums[warp][2 - own / kStates]"),
        *("float32 8 8 8 1", "wrong: gates"),
    ),
}


def _said(program: Path, call: str, device: str = "H200") -> str:
    (line,) = ran(program, *call.split(), *map(str, DEVICES[device]))
    return line


def _built(folder: Path, sources: Path, *flags: str) -> Path:
    return built(folder, DRIVER, *flags, include=[sources], kernels=[sources / HALVES, sources / FLOATS])


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _built(tmp_path_factory.mktemp("lltm_few_rows"), CSRC, "-O1")


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("what", RIGHT)
def test_few_rows_are_right(driver: Path, what: str, device: str) -> None:
    """With less memory fewer rounds are on their way."""
    assert _said(driver, RIGHT[what], device) == "right"


@pytest.mark.parametrize("what", OTHERS)
def test_other_sizes_have_other_products(driver: Path, what: str) -> None:
    assert _said(driver, OTHERS[what]) == "other products"


@pytest.mark.parametrize("what", first_alone(FAULTS, ZOO))
def test_a_fault_is_noticed(tmp_path: Path, what: str) -> None:
    name, text, instead, call, said = FAULTS[what]
    changed = with_fault(tmp_path, CSRC, name, text, instead)
    assert _said(_built(tmp_path, changed, "-O0"), call) == said
