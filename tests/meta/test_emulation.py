"""The emulation of CUDA alone: barriers, exchanges within a warp, threads that return, blocks that never end."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from backends.base import SHARED_CUDA

DRIVER = Path(__file__).parent / "native" / "blocks_of_fibres.cpp"


@pytest.mark.parametrize("flags", [("-O3",), ("-O1", "-fsanitize=address,undefined")], ids=["optimised", "sanitized"])
def test_blocks_of_fibres(flags: tuple[str, ...], tmp_path: Path) -> None:
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("g++ is not on PATH")
    command = [compiler, "-std=c++20", *flags, f"-I{SHARED_CUDA}", str(DRIVER), "-o", str(tmp_path / "driver")]
    built = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert built.returncode == 0, built.stderr
    done = subprocess.run([tmp_path / "driver"], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
