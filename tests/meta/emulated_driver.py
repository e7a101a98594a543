"""Programs of `native/` for C++, or CUDA on the emulation: built with g++, run, and built with a fault planted."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from torch.utils import cpp_extension

from backends.base import NATIVE, SHARED_CUDA

DRIVERS = Path(__file__).parent / "native"


def built(folder: Path, driver: str, *flags: str, include: Sequence[Path] = (), kernels: Sequence[Path] = ()) -> Path:
    """The program in `folder`. `include` comes before the shared headers; `kernels` are compiled beside the driver."""
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("g++ is not on PATH")
    program = folder / "driver"
    command = [compiler, "-std=c++20", *flags, "-DCUDA_EMULATED", "-DOPERATOR_NAMESPACE=driver"]
    command += [f"-I{path}" for path in (*include, SHARED_CUDA, NATIVE)]
    command += [part for path in cpp_extension.include_paths() for part in ("-isystem", path)]
    command += ["-x", "c++", *map(str, kernels), str(DRIVERS / driver), "-o", str(program)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    return program


def ran(program: Path, *arguments: str) -> list[str]:
    """The lines that it prints."""
    done = subprocess.run([program, *arguments], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()


def with_fault(folder: Path, sources: Path, name: str, text: str, instead: str) -> Path:
    """A copy of the sources and the shared headers in which the one `text` of a file is another."""
    changed = folder / "sources"
    changed.mkdir()
    for file in (*sources.glob("*.*"), *SHARED_CUDA.glob("*.h")):
        shutil.copy(file, changed)
    right = (changed / name).read_text()
    assert right.count(text) == 1
    (changed / name).write_text(right.replace(text, instead))
    return changed
