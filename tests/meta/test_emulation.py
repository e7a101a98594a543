"""The emulation of CUDA alone: barriers, exchanges within a warp, products of tiles, blocks beside each other, threads
that return, blocks that never end."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from torch.utils import cpp_extension

from backends.base import SHARED_CUDA
from tests.meta.tiers import first_alone

SOURCES = Path(__file__).parent / "native"
FLAGS = {"optimised": ("-O3",), "sanitized": ("-O1", "-fsanitize=address,undefined")}

#: One worker, which builds each driver once.
pytestmark = pytest.mark.xdist_group("emulation")

#: Kernels of warps_of_fibres.cpp that CUDA defines.
RIGHT = [
    "partial_warp",
    "halves_of_a_warp",
    "outside_the_group",
    "branches_apart",
    "votes",
    "whole_warps_return",
    "condition_of_the_block",
]

#: Kernels that it leaves undefined, and what the failed launch says.
WRONG = {
    "lane_that_does_not_exist": "thread 0: __shfl_xor_sync has the distance 32, but should have one from 0 to 31",
    "negative_distance": "thread 0: __shfl_down_sync has the distance -1, but should have one from 0 to 31",
    "lane_behind_the_last": "thread 36: __shfl_down_sync reads lane 8, which is not in the mask 0x000000ff",
    "lane_outside_the_mask": "thread 0: __shfl_sync reads lane 5, which is not in the mask 0x0000000f",
    "mask_beyond_the_last_warp": "thread 32: __shfl_xor_sync has the mask 0xffffffff, but its warp has 8 lanes: "
    "lane 8 does not exist",
    "mask_without_the_caller": "thread 1: __shfl_sync has the mask 0xfffffffd, which lacks the calling lane, 1",
    "empty_mask": "thread 0: __syncwarp has the mask 0x00000000, which lacks the calling lane, 0",
    "width_0": "thread 0: __shfl_sync has the width 0, but should have 1, 2, 4, 8, 16 or 32",
    "width_24": "thread 0: __shfl_sync has the width 24, but should have 1, 2, 4, 8, 16 or 32",
    "width_64": "thread 0: __shfl_sync has the width 64, but should have 1, 2, 4, 8, 16 or 32",
    "half_a_warp": "thread 0 waits in __shfl_xor_sync with the mask 0xffffffff forever: thread 4 has ended",
    "lanes_that_have_ended": "thread 4: __shfl_xor_sync has the mask 0xffffffff, but its lane 0 has ended",
    "two_masks": "forever: thread 4 waits in __shfl_xor_sync with the mask 0xffffffff",
    "two_intrinsics": "thread 0 waits in __any_sync with the mask 0xffffffff forever: thread 4 waits in __all_sync",
    "barrier_and_exchange": "forever: thread 33 waits in __shfl_xor_sync with the mask 0x000000ff",
    "two_barriers": "in divergent code: other threads wait at warps_of_fibres.cpp:",
    "part_of_a_warp_skips_the_barrier": "in divergent code: thread 36 has ended, while others of its warp wait",
    "part_of_a_warp_waits_less_often": "in divergent code: thread 30 has ended, while others of its warp wait",
}

#: Kernels of blocks_beside.cpp whose blocks may wait for each other.
BESIDE = ["chain", "chain_from_the_last", "thread_of_the_block", "memory_of_its_own", "barriers_of_its_own"]

#: Others, and what the failed launch says.
FOREVER = "block (0, 0, 0), thread 0 waits for another block forever"
NOT_BESIDE = {
    ("never_sent",): FOREVER,
    ("circle",): FOREVER,
    ("behind_a_barrier",): FOREVER,
    ("chain_from_the_last", "one after the other"): FOREVER,
    ("undefined_in_the_last",): "block (4, 0, 0), thread 0: __shfl_sync has the mask 0x00000000",
    ("chain", "too many"): "invalid configuration argument",
}

#: What tiles_of_warps.cpp prints for each of its arguments.
TILES = {
    "": "right",
    "exchanged": "another result",
    "half a warp": "unspecified launch failure: block (0, 0, 0), thread 0 waits in mma.sync with the mask 0xffffffff "
    "forever: thread 16 has ended",
}


def _built(source: str, flags: tuple[str, ...], folder: Path) -> Path:
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("g++ is not on PATH")
    driver = folder / "driver"
    command = [compiler, "-std=c++20", *flags, "-DCUDA_EMULATED", "-DOPERATOR_NAMESPACE=driver", f"-I{SHARED_CUDA}"]
    command += [part for path in cpp_extension.include_paths() for part in ("-isystem", path)]
    command += [str(SOURCES / source), "-o", str(driver)]
    built = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert built.returncode == 0, built.stderr
    return driver


def _ran(driver: Path, *arguments: str) -> list[str]:
    """What a driver prints."""
    done = subprocess.run([driver, *arguments], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize("flags", first_alone(FLAGS))
def test_blocks_of_fibres(flags: str, tmp_path: Path) -> None:
    assert _ran(_built("blocks_of_fibres.cpp", FLAGS[flags], tmp_path)) == ["done"]


@pytest.mark.parametrize("flags", first_alone(FLAGS))
def test_a_copy_is_there_once_its_thread_has_waited_for_it(flags: str, tmp_path: Path) -> None:
    assert _ran(_built("copies_of_fibres.cpp", FLAGS[flags], tmp_path)) == ["done"]


@pytest.fixture(scope="module", params=first_alone(FLAGS))
def warps(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _built("warps_of_fibres.cpp", FLAGS[request.param], tmp_path_factory.mktemp("warps"))


@pytest.mark.parametrize("kernel", RIGHT)
def test_what_cuda_defines_is_right(warps: Path, kernel: str) -> None:
    assert _ran(warps, kernel) == ["right", "right"]


@pytest.mark.parametrize("kernel", WRONG)
def test_what_cuda_leaves_undefined_fails_and_says_why(warps: Path, kernel: str) -> None:
    said = _ran(warps, kernel)
    assert len(said) == 2, "the block after a failed one is judged too"
    for line in said:
        assert line.startswith("unspecified launch failure: block (0, 0, 0), ")
        assert WRONG[kernel] in line


@pytest.mark.parametrize("kernel", ["condition_of_the_block", "partial_warp", "votes"])
def test_a_kernel_that_meets_needs_a_launch_with_barriers(warps: Path, kernel: str) -> None:
    for line in _ran(warps, kernel, "without barriers"):
        assert "was in a kernel of `launch`, but should be in one of `launch_with_barriers`" in line


@pytest.fixture(scope="module", params=first_alone(FLAGS))
def beside(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _built("blocks_beside.cpp", FLAGS[request.param], tmp_path_factory.mktemp("beside"))


def test_blocks_beside_each_other_may_wait_for_another(beside: Path) -> None:
    for kernel in BESIDE:
        assert _ran(beside, kernel) == ["right", "right"], kernel


def test_a_wait_that_never_ends_fails_and_says_who_waits(beside: Path) -> None:
    for arguments, said in NOT_BESIDE.items():
        lines = _ran(beside, *arguments)
        assert len(lines) == 2, arguments
        assert all(said in line for line in lines), (arguments, lines)


def test_a_product_of_tiles_is_that_of_the_matrices(tmp_path: Path) -> None:
    driver = _built("tiles_of_warps.cpp", FLAGS["optimised"], tmp_path)
    assert {how: _ran(driver, how) for how in TILES} == {how: [said, said] for how, said in TILES.items()}
