"""Every CUDA source is compiled once, several at a time, and the first that fails ends the run."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import pytest

from backends.base import CompiledOperator
from harness import discovery
from harness.cli.cuda_sources import compile_all
from harness.errors import Broken


def _every_source() -> set[str]:
    found = set()
    for backend in discovery.all_backends().values():
        for name in discovery.operators():
            implementation = backend.implementation(name)
            if isinstance(implementation, CompiledOperator):
                found |= {f"{implementation.namespace}/{source.name}" for source in implementation.sources}
    return {source for source in found if source.endswith(".cu")}


@pytest.mark.parametrize("jobs", [1, 3])
def test_each_source_is_compiled_once_and_told_in_order(capsys: pytest.CaptureFixture[str], jobs: int) -> None:
    def compile(operator: CompiledOperator, architectures: Sequence[str]) -> list[str]:
        return [f"{operator.namespace}/{source.name} {a}" for a in architectures for source in operator.sources]

    assert compile_all(compile, ["80", "90"], jobs) == 0
    lines = capsys.readouterr().out.splitlines()
    compiled = [line.partition(": ")[2].partition(" ") for line in lines]
    assert sorted(source for source, _, architecture in compiled if architecture == "90") == sorted(_every_source())
    assert [architecture for _, _, architecture in compiled] == ["80", "90"] * len(_every_source())
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
    assert len(begun) < len(_every_source())
