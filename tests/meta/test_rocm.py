"""The CUDA sources are translated without hipcc, and errors of hipcc are reported."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from backends.base import CompiledOperator
from harness.building import rocm
from harness.discovery import all_backends
from harness.errors import Unavailable

_FAKE = """#!/bin/sh
case "$*" in *gfx1*) echo "clang: error: invalid target ID 'gfx1'"; exit 1;; esac
case "$*" in *kernel-resource-usage*) echo "remark: Function Name: one"; esac
"""


#: Names that must not remain, because they have a HIP equivalent.
_OF_CUDA_ALONE = re.compile(r"(?<=defined\(__HIPCC__\)\n)(?:(?!#else).*\n)*#else\n(?:(?!#endif).*\n)*")


@pytest.fixture
def hipcc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A fake compiler that refuses gfx1."""
    path = tmp_path / "rocm" / "bin" / "hipcc"
    path.parent.mkdir(parents=True)
    path.write_text(_FAKE)
    path.chmod(0o755)
    monkeypatch.setenv("ROCM_HOME", str(tmp_path / "rocm"))
    rocm._what_is_missing_for.cache_clear()
    yield path
    rocm._what_is_missing_for.cache_clear()


def _layer_norm(backend: str) -> CompiledOperator:
    implementation = all_backends()[backend].implementation("layer_norm")
    assert isinstance(implementation, CompiledOperator)
    return implementation


@pytest.mark.parametrize(
    ("backend", "names"),
    [
        ("cuda-raw-pointer", ["layer_norm.hip"]),
        ("cuda-accessor", ["layer_norm.hip"]),
        (
            "cuda-fused",
            [
                *("rows.hip", "rows_backward.hip", "few_rows_backward.hip"),
                *("split_rows.hip", "split_rows_backward.hip", "long_rows.hip"),
            ],
        ),
    ],
)
def test_the_translation_leaves_no_cuda_behind(tmp_path: Path, backend: str, names: list[str]) -> None:
    sources = rocm.translate(_layer_norm(backend), tmp_path)
    assert [source.name for source in sources] == names
    texts = {path.name: path.read_text() for path in (*tmp_path.glob("*_hip.h"), *sources)}
    assert "hipGetLastError" in texts["launch_hip.h"]
    for name, text in texts.items():
        translated = _OF_CUDA_ALONE.sub("", text)
        assert not re.search(r"\bcuda[A-Z]\w+\(|<cuda_runtime", translated), name


def test_an_architecture_that_hipcc_lacks_is_told(hipcc: Path) -> None:
    lines = rocm.compile_for_architectures(_layer_norm("cuda-accessor"), ["gfx90a", "gfx1"])
    assert lines == [
        "cuda_accessor/layer_norm.hip gfx90a: 1 kernels",
        "cuda_accessor/layer_norm.hip gfx1: not compiled, invalid target ID 'gfx1'",
    ]
    with pytest.raises(Unavailable, match="gfx1: invalid target ID"):
        rocm.compile_for_architectures(_layer_norm("cuda-accessor"), ["gfx1"])
    hipcc.unlink()
    with pytest.raises(Unavailable, match="no HIP compiler: hipcc is not on PATH"):
        rocm.compile_for_architectures(_layer_norm("cuda-accessor"), ["gfx90a"])
