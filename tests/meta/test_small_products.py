"""The small products of `cpu-fused`: those for AVX2 are tried on a processor that has AVX-512 too."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
import torch
from torch.utils import cpp_extension

from backends.cpu_fused._flags import FLAGS

HERE = Path(__file__).parent / "native"
SOURCE = Path(__file__).parents[2] / "backends" / "cpu_fused" / "csrc"


def test_tiles_of_each_processor_are_right(tmp_path: Path) -> None:
    """Under AddressSanitizer, so that nothing beyond a tensor is read."""
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("g++ is not on PATH")
    program, library = tmp_path / "small_products", Path(torch.__file__).parent / "lib"
    includes = [part for path in cpp_extension.include_paths() for part in ("-isystem", path)]
    command = [compiler, "-std=c++20", *FLAGS, "-fsanitize=address", "-DOPERATOR_NAMESPACE=tiles", f"-I{SOURCE}"]
    command += [*includes, str(HERE / "small_products.cpp"), "-o", str(program)]
    command += [f"-L{library}", "-ltorch_cpu", "-lc10", f"-Wl,-rpath,{library}"]
    built = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert built.returncode == 0, built.stderr
    found = subprocess.run([program], capture_output=True, text=True, check=False, timeout=120)
    assert found.returncode == 0, found.stdout + found.stderr
    words = Path("/proc/cpuinfo").read_text().split() if Path("/proc/cpuinfo").exists() else []
    known = {"AVX2": "avx2", "AVX-512": "avx512vl"}
    assert found.stdout.split() == [name for name, flag in known.items() if flag in words]
