"""The choices of cuda-fused's host on GPUs that are emulated: of an H200, and of others.

A number that was measured on an H200 is held for each multiprocessor, and a kernel that needs more shared memory than a
block of the device may have is not launched.
"""

from __future__ import annotations

from math import isqrt
from pathlib import Path

import pytest

from backends.cuda_fused.lltm import CSRC
from tests.meta.emulated_driver import built, ran

DRIVER = "choices.cpp"
KERNELS = (
    *("rows.cu", "rows_backward.cu", "few_rows_backward.cu", "split_rows.cu", "long_rows.cu"),
    *("lltm.cu", "lltm_small.cu", "lltm_few_rows.cu", "lltm_few_rows_float.cu"),
    *("mlp.cu", "mlp_small.cu", "mlp_narrow.cu"),
)

#: One worker, which builds the driver once.
pytestmark = pytest.mark.xdist_group("choices")

#: Multiprocessors, and KiB of shared memory that a block may ask for.
H200, RTX_4090, RTX_5090, B200, T4 = (132, 227), (128, 99), (170, 99), (148, 227), (40, 64)
DEVICES = {"H200": H200, "RTX 4090": RTX_4090, "RTX 5090": RTX_5090, "B200": B200, "T4": T4, "small": (20, 99)}

READ_ONCE, IN_EACH_PASS = "read once: right", "read in each pass: right"
#: How rows of the most columns that registers hold are read backward, in float64, float32 and float16.
ROWS = {
    "H200": (READ_ONCE, READ_ONCE, READ_ONCE),
    "RTX 4090": (READ_ONCE, READ_ONCE, IN_EACH_PASS),
    "T4": (IN_EACH_PASS, IN_EACH_PASS, IN_EACH_PASS),
}
REFUSED = "launch of rows_backward_kernel failed: invalid argument"


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("choices")
    return built(folder, DRIVER, "-O0", include=[CSRC], kernels=[CSRC / name for name in KERNELS])


def _answers(driver: Path, device: str, question: str) -> list[str]:
    return ran(driver, *map(str, DEVICES[device]), question)


@pytest.mark.parametrize("device", DEVICES)
def test_a_threshold_is_held_for_each_multiprocessor(driver: Path, device: str) -> None:
    multiprocessors = DEVICES[device][0]
    down = 2 ** (multiprocessors.bit_length() - 1)  # rounded down to a power of two
    found = dict(line.rsplit(": ", 1) for line in _answers(driver, device, "sizes"))
    # 16 rows of a state, and as many features: 3 * 16 * state * 2 * state products, at most 2^15 for each.
    assert found.pop("small") == str(isqrt(2**15 * down // 96))
    # 2^14 weights, all that a small network has, in each row: at most 2^15 products for each.
    assert found.pop("small network") == str(min(2 * down, 512))
    # 512 hidden units and 8 outputs of a row: at most 2^13 products for each.
    assert found.pop("narrow network") == str(2 * down)
    assert found.pop("few rows") == str(down)
    assert found.pop("rows that several blocks share") == str(multiprocessors // 2)
    for dtype, bytes in (("float64", 8), ("float32", 4), ("float16", 2)):
        tiles = 512 // (32 * 16 // bytes)
        assert found.pop(f"parts of a bias gradient in {dtype}") == str(4 * down // tiles)
        assert found.pop(f"parts of both bias gradients in {dtype}") == str(4 * down // (tiles + 1))
        assert found.pop(f"parts of rows in {dtype}") == str(2 * multiprocessors)  # two blocks of 256 threads
    assert not found


def test_an_h200_gets_what_was_measured_there(driver: Path) -> None:
    found = _answers(driver, "H200", "sizes")
    assert found[:2] == ["few rows: 128", "rows that several blocks share: 66"]
    assert found[2] == f"small: {isqrt(2**22 // 96)}"


@pytest.mark.parametrize("device", ROWS)
def test_rows_are_read_once_where_a_block_has_the_memory(driver: Path, device: str) -> None:
    wanted = [f"{dtype}, {how}" for dtype, how in zip(("float64", "float32", "float16"), ROWS[device], strict=True)]
    assert _answers(driver, device, "rows") == wanted


def test_a_choice_for_an_h200_alone_is_refused_elsewhere(driver: Path) -> None:
    *_, half = _answers(driver, "RTX 4090", "regardless")
    assert half.startswith("float16, read once: ")
    assert half.endswith(REFUSED)
