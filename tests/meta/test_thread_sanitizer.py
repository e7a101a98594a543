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

HERE = Path(__file__).parent / "native"
BACKENDS = Path(__file__).parents[2] / "backends"
#: The exit code of a process in which ThreadSanitizer found something.
FOUND = 66

#: The driver, the folder of the source that it includes, whether PyTorch is linked, and what a race is found in.
DRIVERS = {
    "rows_by_threads.cpp": (BACKENDS / "cpu_fused" / "csrc", True, "ward_rows"),
    "calls_by_threads.cpp": (BACKENDS / "cuda_raw_pointer" / "csrc", False, "lltm_backward_kernel"),
}


def _built(driver: str, folder: Path, *flags: str) -> Path:
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("g++ is not on PATH")
    source, with_torch, _ = DRIVERS[driver]
    torch_lib = Path(torch.__file__).parent / "lib"
    includes = [f"-I{path}" for path in (source, NATIVE, SHARED_CUDA)]
    includes += [part for path in cpp_extension.include_paths() for part in ("-isystem", path)]
    libraries = [f"-L{torch_lib}", "-ltorch_cpu", "-lc10", f"-Wl,-rpath,{torch_lib}"] if with_torch else []
    target = folder / "driver"
    emulated = [] if with_torch else ["-DCUDA_EMULATED"]
    command = [
        compiler,
        "-std=c++20",
        "-O1",
        "-g",
        "-fsanitize=thread",
        "-DOPERATOR_NAMESPACE=threads",
        *emulated,
        *flags,
    ]
    command += [*includes, str(HERE / driver), "-o", str(target), *libraries]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    return target


def _run(program: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(program)], capture_output=True, text=True, check=False, timeout=120)


@pytest.mark.parametrize("driver", DRIVERS)
def test_no_race(driver: str, tmp_path: Path) -> None:
    done = _run(_built(driver, tmp_path))
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr


@pytest.mark.parametrize("driver", DRIVERS)
def test_a_planted_race_is_found(driver: str, tmp_path: Path) -> None:
    done = _run(_built(driver, tmp_path, "-DPLANTED_OVERLAP"))
    assert done.returncode == FOUND, done.stderr
    assert "data race" in done.stderr
    assert DRIVERS[driver][2] in done.stderr
