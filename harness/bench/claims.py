"""What is claimed of speed, each with the rows that decide it: met or not met, with the figure, or not measured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from harness.bench.products import PRODUCTS_ALONE
from harness.bench.record import Row, find
from harness.bench.tables import REFERENCE
from spec.contract import BACKWARD, FORWARD

MET, NOT_MET, NOT_MEASURED = "met", "**not met**", "not measured"


@dataclass(frozen=True)
class Claim:
    """A backend is at least `least` times as fast as `against`, in one place. Below 1 it may be that much slower."""

    backend: str
    phase: str
    least: float
    case: str
    against: str = REFERENCE
    operator: str = "lltm"
    device: str = "cpu"
    dtype: str = "float32"
    clock: str = "wall"
    threads: int | None = 1

    def text(self) -> str:
        """The claim in words."""
        where = f"{self.phase} of {self.operator} at {self.case} in {self.dtype}, {self.device} {self.clock}"
        return f"`{self.backend}` is at least {self.least:.2g} times as fast as `{self.against}`: {where}"

    def judged(self, rows: list[Row]) -> tuple[str, str]:
        """(verdict, figure). It is met where the whole interval of the ratio is."""
        keys = ("backend", "phase", "case", "operator", "device", "dtype", "clock", "threads")
        row = find(rows, **{key: getattr(self, key) for key in keys})
        found = row and row["ratios"].get(self.against)
        if not found:
            return NOT_MEASURED, "-"
        figure = f"{found['median']:.2f} ({found['low']:.2f}-{found['high']:.2f})"
        return (MET if found["low"] >= self.least else NOT_MET), figure


_CUDA: dict[str, Any] = {"device": "cuda", "threads": None}

#: By what is claimed: the tutorial's own gains, and what the fused pass on the CPU was written for.
CLAIMS = (
    Claim("aten-cpp", FORWARD, 1.0, "tutorial"),
    Claim("aten-cpp", BACKWARD, 1.0, "tutorial"),
    Claim("cpu-fused", FORWARD, 1.7, "tutorial"),
    Claim("cpu-fused", BACKWARD, 1.5, "tutorial"),
    Claim("cpu-fused", FORWARD, 1 / 1.1, "middle", against=PRODUCTS_ALONE),
    Claim("cpu-fused", BACKWARD, 1 / 1.1, "middle", against=PRODUCTS_ALONE),
    # The tutorial's table on the GPU: its kernel takes 0.69 of Python's time forward, and 0.74 backward.
    Claim("cuda-raw-pointer", FORWARD, 1 / 0.69, "tutorial", **_CUDA),
    Claim("cuda-raw-pointer", BACKWARD, 1 / 0.74, "tutorial", **_CUDA),
    Claim("cuda-accessor", FORWARD, 1 / 0.69, "tutorial", **_CUDA),
    Claim("cuda-accessor", BACKWARD, 1 / 0.74, "tutorial", **_CUDA),
)
