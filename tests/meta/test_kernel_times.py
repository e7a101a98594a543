"""What docs/performance.md says of single kernels is what the records say."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from tests.meta.conftest import ROOT

PAGE = (ROOT / "docs/performance.md").read_text()
RESULTS = ROOT / "results/nvidia-h200"
#: Kernels of MLP, by what they do; what is left are the products of the library.
_PASSES = ("mlp_forward_kernel", "mlp_backward_kernel", "triton_poi_")
_SUMS = ("at::reduce_kernel", "triton_red_")


def _microseconds(run: dict[str, Any]) -> tuple[float, float, float]:
    """Of the products, of the passes between them, and of the sums for the biases."""

    def of(names: tuple[str, ...]) -> float:
        return sum(kernel["us"] for kernel in run["kernels"] if any(name in kernel["kernel"] for name in names))

    passes, sums = of(_PASSES), of(_SUMS)
    return sum(kernel["us"] for kernel in run["kernels"]) - passes - sums, passes, sums


def test_the_times_of_one_kernel_and_of_three() -> None:
    for row in json.loads((RESULTS / "lltm-few-rows.json").read_text())["rows"]:
        times = " | ".join(f"{row[name]:.1f}" for name in ("one_kernel", "three_kernels", "torch_compile"))
        assert f"| {row['dtype']}, {row['sizes']}, {row['phase']} | {times} |" in PAGE


def test_the_times_of_early_launches() -> None:
    """The page has some of the rows."""
    lines = PAGE[PAGE.index("| operator, size, dtype, phase |") :].split("\n\n")[0].splitlines()[2:]
    rows = {}
    for row in json.loads((RESULTS / "early-launch.json").read_text())["rows"]:
        names = ("plain", "early", "lets_next_begin", "torch_compile")
        times = [f"{row[name]:.2f}" if name in row else "." for name in names]
        rows[f"{row['operator']} {row['sizes']}, {row['dtype']}, {row['phase']}"] = times
    assert len(lines) > 5
    for line in lines:
        what, *times = (part.strip() for part in line.strip("|").split("|"))
        assert times == rows[what]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize(("case", "phase"), [("digits", "forward"), ("middle", "forward+backward")])
def test_the_times_of_the_kernels_of_mlp(case: str, phase: str, dtype: str) -> None:
    runs = json.loads((RESULTS / "kernels-mlp.json").read_text())["runs"]
    ours, compiled = (
        _microseconds(run)
        for backend in ("cuda-raw-pointer", "torch-compile")
        for run in runs
        if (run["case"], run["phase"], run["backend"], run["dtype"]) == (case, phase, backend, dtype)
    )
    start = f"| {case}, {phase.replace('+', ' and ')}, {dtype} |"
    lines = PAGE[PAGE.index(start) :].splitlines()[: 3 if "backward" in phase else 2]
    assert len(lines) == (3 if any(ours[2:]) else 2)
    for line, own, other in zip(lines, ours, compiled, strict=False):
        said = [float(re.match(r"[0-9.]+", cell.strip())[0]) for cell in line.split("|")[3:5]]  # type: ignore[index]
        assert said == pytest.approx([own, other], abs=0.051), line
