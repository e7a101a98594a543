"""The state of a sequence spread over blocks (`cuda_fused/csrc/lltm_sequence_spread.cu`), emulated.

Which sizes are spread over how many blocks, that the results are right there, and that faults in what blocks send each
other are noticed.

The emulated device holds 40 blocks at once. An H200 holds 132 of the widest kernels.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from backends.cuda_fused.lltm_sequence import CSRC
from tests.meta.emulated_driver import built, ran, with_fault
from tests.meta.tiers import ZOO, first_alone

DRIVER = "spread_sequence.cpp"

#: One worker, which builds the right driver once.
pytestmark = pytest.mark.xdist_group("spread_sequence")

#: dtype, steps, batch and state_size; then teams of blocks and slices of a block. The state is not a multiple of what a
#: warp multiplies, nor the batch one of a tile.
SPREAD = {
    "one tile, one slice a block": ("bfloat16 4 3 41", 1, 1),
    "two tiles, and no block for each slice of both": ("float16 2 20 200", 2, 2),
    "teams with two tiles": ("bfloat16 2 70 150", 4, 2),
    "teams with three tiles": ("float32 1 70 150", 2, 1),
    "twice as wide": ("float32 1 3 299", 1, 1),
    "twice as wide, two slices a block": ("float16 2 3 401", 1, 2),
    "the widest": ("bfloat16 1 3 600", 1, 2),
    "blocks of a smaller GPU": ("float32 1 3 299 99", 1, 1),
}

#: Sizes for which the device has too few blocks or registers, or blocks too little memory, by a last number in KiB:
#: these are computed step by step.
NOT_SPREAD = [
    "bfloat16 2 3 700",
    "float32 2 3 321",
    "float32 1 3 520",
    "bfloat16 2 3 1025",
    "bfloat16 2 200 150",
    "bfloat16 4 3 41 16",
]

#: A file, its text, what is there instead, and what the driver prints last.
FAULTS = {
    "the flag of a message is not looked at": (
        "messages.h",
        "return word[0].flag == flag && word[1].flag == flag;",
        "return true;",
        "wrong: gates",
    ),
    "one place for all messages, which are overwritten unread": (
        "spread_state.h",
        "static_cast<int>(flag % 2)",
        "static_cast<int>(flag % 1)",
        "waits for another block forever",
    ),
    "sums are read before all warps have written theirs": (
        "spread_kernels.h",
        "      // done.\n      __syncthreads();",
        "      // done.",
        "wrong: gates",
    ),
    "the last message is not sent": (
        "spread_kernels.h",
        "if (step + 1 < spread.steps)",
        "if (step + 2 < spread.steps)",
        "waits for another block forever",
    ),
}


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(tmp_path_factory.mktemp("spread"), DRIVER, "-O1", include=[CSRC])


@pytest.mark.parametrize("what", SPREAD)
def test_a_spread_state_is_right(driver: Path, what: str) -> None:
    call, teams, slices = SPREAD[what]
    plan = f"teams {teams}, slices {slices}"
    assert ran(driver, *call.split()) == [f"forward: {plan}", f"backward: {plan}", "right"]


@pytest.mark.parametrize("call", NOT_SPREAD)
def test_what_does_not_fit_the_device_is_not_spread(driver: Path, call: str) -> None:
    assert ran(driver, *call.split()) == ["forward: teams 0, slices 0", "backward: teams 0, slices 0"]


@pytest.mark.parametrize("what", first_alone(FAULTS, ZOO))
def test_a_fault_in_what_blocks_send_is_noticed(tmp_path: Path, what: str) -> None:
    name, text, instead, said = FAULTS[what]
    changed = with_fault(tmp_path, CSRC, name, text, instead)
    assert said in ran(built(tmp_path, DRIVER, "-O0", include=[changed]), "bfloat16", "3", "3", "41")[-1]
