"""LLTM's gradient of the weights for few rows (`cuda_fused/csrc/lltm_few_rows_weights*`), emulated, against loops."""

from __future__ import annotations

from pathlib import Path

import pytest

from backends.cuda_fused.lltm import CSRC
from tests.meta.emulated_driver import built, ran, with_fault
from tests.meta.tiers import ZOO, first_alone

DRIVER = "lltm_few_rows_weights.cpp"
HALVES, FLOATS = "lltm_few_rows_weights.cu", "lltm_few_rows_weights_float.cu"

#: One worker, which builds the right driver once.
pytestmark = pytest.mark.xdist_group("lltm_few_rows_weights")

#: dtype, batch, input_features, state_size, and the offset of the input from aligned memory.
RIGHT = {
    "one row": "bfloat16 1 8 8 0",
    "a row less than a step": "float16 15 24 16 0",
    "one step": "bfloat16 16 32 32 0",
    "a row more than a step": "float16 17 40 8 0",
    "the most rows": "bfloat16 32 64 64 0",
    "no features": "float16 5 0 64 0",
    "one block": "bfloat16 31 88 40 0",
    "a vector more than a block": "float16 29 88 48 0",
    "several blocks": "bfloat16 32 200 128 0",
    "features begin with a block": "float16 32 16 128 0",
    "aligned memory beyond its beginning": "bfloat16 16 32 32 8",
    "one row of floats": "float32 1 8 8 0",
    "no features beside floats": "float32 5 0 64 0",
    "one block of floats": "float32 15 40 24 0",
    "the most rows of floats": "float32 16 64 64 0",
    "several blocks of floats": "float32 9 200 128 0",
    "features of floats begin with a block": "float32 16 8 128 0",
}

#: What the kernel does not take.
OTHERS = {
    "too many rows": "bfloat16 33 64 64 0",
    "features that are no vectors": "bfloat16 4 60 64 0",
    "a state of no vectors": "float16 4 64 60 0",
    "memory that is not aligned": "float16 4 64 64 4",
    "too many rows of floats": "float32 17 64 64 0",
    "floats that are not aligned": "float32 4 64 64 2",
    "doubles": "float64 4 64 64 0",
    "offsets beyond an int": "bfloat16 1 8 19000 0",
}

#: The kernel, a text, what is there instead, the call, and what the driver prints.
FAULTS = {
    "the copies are not waited for": (
        *(HALVES, "  wait_for_groups<0>();\n", ""),
        *(RIGHT["one step"], "wrong: unit 0, column 0"),
    ),
    "the copies of others are not waited for": (
        *(HALVES, "  __syncthreads();\n", ""),
        *(RIGHT["one step"], "wrong: unit 0, column 0"),
    ),
    "a step is left out": (
        *(HALVES, "step < steps", "step + 1 < steps"),
        *(RIGHT["a row more than a step"], "wrong: unit 0, column 0"),
    ),
    "rows beyond the last are those of the memory": (
        *(HALVES, "is_row = row < sizes.batch", "is_row = true"),
        *(RIGHT["a row less than a step"], "wrong: unit 0, column 0"),
    ),
    "neighbours are exchanged": (
        *(HALVES, "return upper >> 16 | (lower & 0xffff0000u);", "return lower >> 16 | (upper & 0xffff0000u);"),
        *(RIGHT["a row more than a step"], "wrong: unit 0, column 1"),
    ),
    "columns beyond the last are written": (
        *(HALVES, "unit >= units || column >= columns", "unit >= units"),
        *(RIGHT["no features"], "wrong: unit 1, column 0"),
    ),
    "units beyond the last are written": (
        *(HALVES, "unit >= units || column >= columns", "column >= columns"),
        *(RIGHT["one row"], "wrong: beyond the end"),
    ),
    "the halves of a warp's columns are exchanged": (
        *(HALVES, "half * kOwnColumns / 2 + t", "(1 - half) * kOwnColumns / 2 + t"),
        *(RIGHT["the most rows"], "wrong: unit 0, column 0"),
    ),
    "the second unit of a lane is its first": (
        *(HALVES, "own % 2 * 2 + half", "half"),
        *(RIGHT["one row"], "wrong: unit 1, column 0"),
    ),
    "the blocks across are one too few": (
        *(HALVES, "int across = (columns + kColumns - 1) / kColumns", "int across = columns / kColumns"),
        *(RIGHT["several blocks"], "wrong: unit 0, column 256"),
    ),
    "the copies of floats by others are not waited for": (
        *(FLOATS, "  __syncthreads();\n", ""),
        *(RIGHT["one block of floats"], "wrong: unit 0, column 0"),
    ),
    "a row of floats is left out": (
        *(FLOATS, "row < sizes.batch; ++row", "row + 1 < sizes.batch; ++row"),
        *(RIGHT["one row of floats"], "wrong: unit 0, column 0"),
    ),
    "the second vector of floats of a lane is its first": (
        *(FLOATS, "own_unit + unit]", "own_unit]"),
        *(RIGHT["one block of floats"], "wrong: unit 4, column 0"),
    ),
    "columns of floats beyond the last are written": (
        *(FLOATS, "  if (column >= columns) return;\n", ""),
        *(RIGHT["no features beside floats"], "wrong: unit 1, column 0"),
    ),
    "units of floats beyond the last are written": (
        *(FLOATS, "if (unit < units) store", "store"),
        *(RIGHT["one row of floats"], "wrong: beyond the end"),
    ),
    "a line of floats begins where the other one does": (
        *(FLOATS, "int column = first_column + own_column", "int column = own_column"),
        *(RIGHT["several blocks of floats"], "wrong: unit 0, column 0"),
    ),
}


def _said(program: Path, call: str) -> str:
    (line,) = ran(program, *call.split())
    return line


def _built(folder: Path, sources: Path, *flags: str) -> Path:
    return built(folder, DRIVER, *flags, include=[sources], kernels=[sources / HALVES, sources / FLOATS])


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _built(tmp_path_factory.mktemp("lltm_few_rows_weights"), CSRC, "-O1")


@pytest.mark.parametrize("what", RIGHT)
def test_few_rows_are_right(driver: Path, what: str) -> None:
    assert _said(driver, RIGHT[what]) == "right"


@pytest.mark.parametrize("what", OTHERS)
def test_other_sizes_have_other_products(driver: Path, what: str) -> None:
    assert _said(driver, OTHERS[what]) == "other products"


@pytest.mark.parametrize("what", first_alone(FAULTS, ZOO))
def test_a_fault_is_noticed(tmp_path: Path, what: str) -> None:
    kernel, text, instead, call, said = FAULTS[what]
    changed = with_fault(tmp_path, CSRC, kernel, text, instead)
    assert _said(_built(tmp_path, changed, "-O0"), call) == said
