"""Every CUDA source is compiled once, several at a time, and the first that fails ends the run.

A fault in what runs on the host is told as one in a kernel is.
"""

from __future__ import annotations

import shutil
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from backends.base import CompiledOperator
from harness.building.build import compile_for_architectures
from harness.cli.cuda_sources import compile_all
from harness.errors import Broken
from tests.meta.conftest import ROOT

#: Every file, so that a source that no operator lists is noticed too.
EVERY_SOURCE = sorted(f"{file.parents[1].name}/{file.name}" for file in (ROOT / "backends").glob("*/csrc/*.cu"))


@pytest.mark.parametrize("jobs", [1, 3])
def test_each_source_is_compiled_once_and_told_in_order(capsys: pytest.CaptureFixture[str], jobs: int) -> None:
    def compile(operator: CompiledOperator, architectures: Sequence[str]) -> list[str]:
        return [f"{operator.namespace}/{source.name} {a}" for a in architectures for source in operator.sources]

    assert compile_all(compile, ["80", "90"], jobs) == 0
    lines = capsys.readouterr().out.splitlines()
    compiled = [line.partition(": ")[2].partition(" ") for line in lines]
    assert sorted(source for source, _, architecture in compiled if architecture == "90") == EVERY_SOURCE
    assert [architecture for _, _, architecture in compiled] == ["80", "90"] * len(EVERY_SOURCE)
    backends = [line.partition(": ")[0] for line in lines]
    assert backends == sorted(backends)


def test_several_are_compiled_at_a_time() -> None:
    both = threading.Barrier(2, timeout=60)

    def compile(operator: CompiledOperator, architectures: Sequence[str]) -> list[str]:
        if operator.namespace == "cuda_accessor" and operator.sources[0].name in ("layer_norm.cu", "lltm.cu"):
            both.wait()  # the first two: neither returns before the other has begun
        return []

    assert compile_all(compile, ["90"], jobs=2) == 0


def test_after_a_failure_the_rest_is_not_begun() -> None:
    begun = []

    def compile(operator: CompiledOperator, architectures: Sequence[str]) -> list[str]:
        begun.append(operator.sources)
        raise Broken("the log")

    with pytest.raises(Broken, match="the log"):
        compile_all(compile, ["90"], jobs=1)
    assert len(begun) < len(EVERY_SOURCE)


_KERNEL = """
__global__ void twice(float* x) { x[threadIdx.x] *= 2; }
void launch(float* x, cudaStream_t stream) { twice<<<1, 32, 0, stream>>>(x); }
"""


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="there is no nvcc on this machine")
@pytest.mark.parametrize(
    ("right", "wrong", "says"),
    [
        ("*= 2", "*= two", 'identifier "two" is undefined'),
        (">>>(x)", ">>>(stream)", "is incompatible with parameter of type"),
        ("float* x, c", "float* y, c", 'identifier "x" is undefined'),
    ],
)
def test_a_fault_is_told_in_a_kernel_and_on_the_host(tmp_path: Path, right: str, wrong: str, says: str) -> None:
    source = tmp_path / "twice.cu"
    operator = CompiledOperator("twice", "mine", (source,))
    source.write_text(_KERNEL)
    (line,) = compile_for_architectures(operator, ["90"])
    assert line.startswith("mine/twice.cu sm_90: ")
    assert right in _KERNEL
    source.write_text(_KERNEL.replace(right, wrong, 1))
    with pytest.raises(Broken, match=says):
        compile_for_architectures(operator, ["90"])
