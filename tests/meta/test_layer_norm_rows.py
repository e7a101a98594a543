"""Rows of LayerNorm that several blocks share, and rows that a block holds (`cuda_fused/csrc/`), emulated.

Which of the kernels a size reaches depends on the device. So these are devices of few multiprocessors, on which small
matrices reach them all; the results are compared with loops in double, and faults in what blocks leave each other are
noticed.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from backends.cuda_fused.layer_norm import CSRC
from tests.meta.emulated_driver import built, ran, with_fault
from tests.meta.tiers import ZOO, first_alone

DRIVER = "layer_norm_rows.cpp"

#: One worker, which builds the right driver once.
pytestmark = pytest.mark.xdist_group("layer_norm_rows")

#: multiprocessors, dtype, rows, columns and the gradients that are wanted; then the slices of a row forward, and the
#: numbers that the kernels of backward leave each other: two for each row and slice, and for several groups of rows two
#: for each group and column.
SPLIT = {
    "one row": ("128 float32 1 8196 iwb", 9, 2 * 9),
    "the least that is long": ("128 bfloat16 1 16392 iwb", 9, 2 * 9),
    "two numbers a vector": ("128 float64 1 4098 iwb", 9, 2 * 9),
    "no vectors": ("128 float16 3 2049 iwb", 9, 2 * 3 * 9),
    "several groups of rows": ("128 float32 9 8200 iwb", 9, 2 * 3 * 8200 + 2 * 9 * 9),
    "several groups, and the last is smaller": ("20 bfloat16 10 16400 iwb", 3, 2 * 3 * 16400 + 2 * 10 * 9),
    "no gradient of the input": ("128 float32 9 8200 wb", 9, 2 * 3 * 8200 + 2 * 9 * 9),
    "one group, no gradient of the input": ("128 float32 2 8200 w", 9, 2 * 2 * 9),
    "the gradient of the input alone": ("128 float32 9 8200 i", 9, 2 * 3 * 8200 + 2 * 9 * 9),
    "one of two column gradients": ("128 float32 9 8200 ib", 9, 2 * 3 * 8200 + 2 * 9 * 9),
    "four vectors a thread": ("2 float32 1 16400 iwb", 5, 2 * 17),
    "slices of several chunks": ("2 float32 1 150004 iwb", 19, 2 * 30),
    "slices of several chunks, no vectors": ("2 bfloat16 1 70001 iwb", 23, 2 * 31),
    "more rows than a group has": ("66 float32 33 16897 iwb", 17, 2 * 2 * 16897 + 2 * 33 * 67),
    "neither weight nor bias": ("128 float32 2 8196 -", 9, None),
}

#: Rows that a block holds: every number of vectors that a thread has, with and without weight and bias, for few rows,
#: whose weight and bias arrive with the row, and for many.
HELD = [
    f"{multiprocessors} {dtype} {rows} {columns} {wanted}"
    for multiprocessors, rows in ((4, 1), (4, 20), (128, 3))
    for dtype, width in (("float64", 2), ("float32", 4), ("bfloat16", 8))
    for columns in (width, 8 * width, 256 * width, 300 * width, 600 * width, 1024 * width, 1030 * width, 2048 * width)
    for wanted in ("iwb", "-")
] + [
    # Rows of a warp, more than are there at once: with a last block that is full, and one that is not.
    f"2 {dtype} {rows} {width * 128} iwb"
    for dtype, width in (("float32", 4), ("bfloat16", 8), ("float16", 8))
    for rows in (66, 67)
]

#: A file, its text, what is there instead, the call, and what the driver prints last.
FAULTS = {
    "the means of slices are not compared": (
        "split_rows.cu",
        "return of_row[2 * slice + 1] + of_mean * (slice < last ? whole : rest) * of_mean;",
        "return of_row[2 * slice + 1];",
        "128 float32 1 8196 iwb",
        "wrong: rstd",
    ),
    "all slices count as if they were of one length": (
        "split_rows.cu",
        "(slice < last ? whole : rest) * (of_row",
        "whole * (of_row",
        "128 float32 2 8196 -",
        "wrong: mean",
    ),
    "a row has the numbers of another": (
        "slices.h",
        "return row * count + slice;",
        "return slice;",
        "128 float32 2 8196 -",
        "wrong: mean",
    ),
    "slices beyond those of the lanes are left out": (
        "slices.h",
        "slice < count; slice += kLanes",
        "slice < count; slice += 64 * kLanes",
        "128 float32 1 40000 -",
        "wrong: mean",
    ),
    "a chunk forgets the one before it": (
        "split_rows_backward.cu",
        "begin == start ? sum_h : to[0] + sum_h",
        "sum_h",
        "2 float32 1 150004 iwb",
        "wrong: d_input",
    ),
    "the last group has rows beyond the end": (
        "split_rows_backward.cu",
        "first + rows_of_group < rows ? first + rows_of_group : rows",
        "rows",
        "128 float32 9 8200 wb",
        "wrong: d_weight",
    ),
    "sums of warps are read before all have written theirs": (
        "split_rows_backward.cu",
        "  __syncthreads();\n",
        "",
        "128 float32 1 9216 iwb",
        "wrong: d_input",
    ),
    "a group is not added": (
        "split_rows_backward.cu",
        "group = 1; group < groups",
        "group = 2; group < groups",
        "128 float32 9 8200 iwb",
        "wrong: d_weight",
    ),
    "a block skips rows that it has no threads for": (
        "rows.cu",
        "static_cast<int>(blockDim.x) >> log_threads",
        "static_cast<int>(kBlockSize) >> log_threads",
        "4 float32 20 32 iwb",
        "wrong: mean",
    ),
    "weights that arrive with the row are those of the first vector": (
        "rows.cu",
        "weights[ahead ? k : 0]",
        "weights[0]",
        "128 float32 1 4096 -w",
        "wrong: output",
    ),
}


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(tmp_path_factory.mktemp("layer_norm_rows"), DRIVER, "-O1", include=[CSRC])


@pytest.mark.parametrize("what", SPLIT)
def test_a_row_that_several_blocks_share_is_right(driver: Path, what: str) -> None:
    call, slices, numbers = SPLIT[what]
    backward = [] if numbers is None else [f"backward: {numbers} numbers"]
    assert ran(driver, *call.split()) == [f"forward: {slices} slices", *backward, "right"]


def test_a_row_that_a_block_holds_is_right(driver: Path) -> None:
    for call in HELD:
        assert ran(driver, *call.split()) == ["forward: a block holds rows", "right"], call


@pytest.mark.parametrize("call", ["128 float32 65 8196 iwb", "3 bfloat16 2 16400 iwb", "128 float32 3 2047 iwb"])
def test_many_rows_and_short_ones_are_not_shared(driver: Path, call: str) -> None:
    assert ran(driver, *call.split()) == ["forward: neither"]


@pytest.mark.parametrize("what", first_alone(FAULTS, ZOO))
def test_a_fault_in_what_blocks_leave_each_other_is_noticed(tmp_path: Path, what: str) -> None:
    name, text, instead, call, said = FAULTS[what]
    changed = with_fault(tmp_path, CSRC, name, text, instead)
    assert ran(built(tmp_path, DRIVER, "-O0", include=[changed]), *call.split())[-1] == said
