"""LLTM's gradient of the weights for few rows (`cuda_fused/csrc/lltm_few_rows_weights.cu`), emulated, against loops."""

from __future__ import annotations

from pathlib import Path

import pytest

from backends.cuda_fused.lltm import CSRC
from tests.meta.emulated_driver import built, ran, with_fault
from tests.meta.tiers import ZOO, first_alone

DRIVER, KERNEL = "lltm_few_rows_weights.cpp", "lltm_few_rows_weights.cu"

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
}

#: What the kernel does not take.
OTHERS = {
    "too many rows": "bfloat16 33 64 64 0",
    "features that are no vectors": "bfloat16 4 60 64 0",
    "a state of no vectors": "float16 4 64 60 0",
    "memory that is not aligned": "float16 4 64 64 4",
    "floats": "float32 4 64 64 0",
    "offsets beyond an int": "bfloat16 1 8 19000 0",
}

#: A text, what is there instead, the call, and what the driver prints.
FAULTS = {
    "the copies are not waited for": ("  wait_for_groups<0>();\n", "", RIGHT["one step"], "wrong: unit 0, column 0"),
    "the copies of others are not waited for": (
        "  __syncthreads();\n",
        "",
        RIGHT["one step"],
        "wrong: unit 0, column 0",
    ),
    "a step is left out": (
        "step < steps",
        "step + 1 < steps",
        RIGHT["a row more than a step"],
        "wrong: unit 0, column 0",
    ),
    "rows beyond the last are those of the memory": (
        *("is_row = row < sizes.batch", "is_row = true"),
        *(RIGHT["a row less than a step"], "wrong: unit 0, column 0"),
    ),
    "neighbours are exchanged": (
        *("return upper >> 16 | (lower & 0xffff0000u);", "return lower >> 16 | (upper & 0xffff0000u);"),
        *(RIGHT["a row more than a step"], "wrong: unit 0, column 1"),
    ),
    "columns beyond the last are written": (
        *("unit >= units || column >= columns", "unit >= units"),
        *(RIGHT["no features"], "wrong: unit 1, column 0"),
    ),
    "units beyond the last are written": (
        *("unit >= units || column >= columns", "column >= columns"),
        *(RIGHT["one row"], "wrong: beyond the end"),
    ),
    "the halves of a warp's columns are exchanged": (
        *("half * kOwnColumns / 2 + t", "(1 - half) * kOwnColumns / 2 + t"),
        *(RIGHT["the most rows"], "wrong: unit 0, column 0"),
    ),
    "the second unit of a lane is its first": (
        *("own % 2 * 2 + half", "half"),
        *(RIGHT["one row"], "wrong: unit 1, column 0"),
    ),
    "the blocks across are one too few": (
        *("int across = (columns + kColumns - 1) / kColumns", "int across = columns / kColumns"),
        *(RIGHT["several blocks"], "wrong: unit 0, column 256"),
    ),
}


def _said(program: Path, call: str) -> str:
    (line,) = ran(program, *call.split())
    return line


def _built(folder: Path, sources: Path, *flags: str) -> Path:
    return built(folder, DRIVER, *flags, include=[sources], kernels=[sources / KERNEL])


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
    text, instead, call, said = FAULTS[what]
    changed = with_fault(tmp_path, CSRC, KERNEL, text, instead)
    assert _said(_built(tmp_path, changed, "-O0"), call) == said
