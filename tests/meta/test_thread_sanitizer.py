"""ThreadSanitizer over the threaded CPU code, and over the emulation called by several threads: no race, and a planted
one is found."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
import torch
from torch.utils import cpp_extension

from backends.base import NATIVE, SHARED_CUDA
from tests.meta.tiers import first_alone

HERE = Path(__file__).parent / "native"
BACKENDS = Path(__file__).parents[2] / "backends"
#: The exit code of a process in which ThreadSanitizer found something.
FOUND = 66

#: The driver, the folder of the source that it includes, whether PyTorch is linked, and what a race is found in.
DRIVERS = {
    "calls_by_threads.cpp": (BACKENDS / "cuda_raw_pointer" / "csrc", False, "lltm_backward_kernel"),
    "rows_by_threads.cpp": (BACKENDS / "cpu_fused" / "csrc", True, "ward_rows"),
}


@pytest.fixture(scope="module", params=first_alone(DRIVERS))
def built(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """A driver, and its program; with an argument, it plants a race."""
    driver: str = request.param
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("g++ is not on PATH")
    source, with_torch, _ = DRIVERS[driver]
    torch_lib = Path(torch.__file__).parent / "lib"
    includes = [f"-I{path}" for path in (source, NATIVE, SHARED_CUDA)]
    includes += [part for path in cpp_extension.include_paths() for part in ("-isystem", path)]
    libraries = [f"-L{torch_lib}", "-ltorch_cpu", "-lc10", f"-Wl,-rpath,{torch_lib}"] if with_torch else []
    target = tmp_path_factory.mktemp("built") / "driver"
    emulated = [] if with_torch else ["-DCUDA_EMULATED"]
    command = [compiler, "-std=c++20", "-O1", "-g", "-fsanitize=thread", "-DOPERATOR_NAMESPACE=threads", *emulated]
    command += [*includes, str(HERE / driver), "-o", str(target), *libraries]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    return driver, target


def _run(*command: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)


def test_no_race(built: tuple[str, Path]) -> None:
    done = _run(built[1])
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr


def test_a_planted_race_is_found(built: tuple[str, Path]) -> None:
    driver, program = built
    done = _run(program, "overlap")
    assert done.returncode == FOUND, done.stderr
    assert "data race" in done.stderr
    assert DRIVERS[driver][2] in done.stderr
