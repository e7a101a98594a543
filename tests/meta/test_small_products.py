"""The small products of `cpu-fused`: those for AVX2 are tried on a processor that has AVX-512 too."""

from __future__ import annotations

from pathlib import Path

from backends.cpu_fused._flags import FLAGS
from tests.meta.emulated_driver import built, ran

SOURCE = Path(__file__).parents[2] / "backends" / "cpu_fused" / "csrc"


def test_tiles_of_each_processor_are_right(tmp_path: Path) -> None:
    """Under AddressSanitizer, so that nothing beyond a tensor is read."""
    found = ran(built(tmp_path, "small_products.cpp", *FLAGS, "-fsanitize=address", include=(SOURCE,)))
    words = Path("/proc/cpuinfo").read_text().split() if Path("/proc/cpuinfo").exists() else []
    known = {"AVX2": "avx2", "AVX-512": "avx512vl"}
    assert found == [name for name, flag in known.items() if flag in words]
