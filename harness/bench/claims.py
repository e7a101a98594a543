"""The claims about speed and memory, each with the rows that decide it: met, not met, or not measured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from harness.bench.products import FLOOR, PRODUCTS_ALONE
from harness.bench.record import Row, find
from harness.bench.tables import REFERENCE
from spec.contract import BACKWARD, FORWARD, FORWARD_AND_BACKWARD

MET, NOT_MET, NOT_MEASURED = "met", "**not met**", "not measured"


@dataclass(frozen=True)
class Claim:
    """At one case, a backend is at least `least` times as fast as `against`; a value below 1 allows it to be slower."""

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
        return f"`{self.backend}` is at least {self.least:.3g} times as fast as `{self.against}`: {where}"

    def judged(self, rows: list[Row]) -> tuple[str, str]:
        """(verdict, figure). The claim is met if the whole interval of the ratio meets it."""
        keys = ("backend", "phase", "case", "operator", "device", "dtype", "clock", "threads")
        row = find(rows, **{key: getattr(self, key) for key in keys})
        found = row and row["ratios"].get(self.against)
        if not found:
            return NOT_MEASURED, "-"
        figure = f"{found['median']:.2f} ({found['low']:.2f}-{found['high']:.2f})"
        return (MET if found["low"] >= self.least else NOT_MET), figure


@dataclass(frozen=True)
class MemoryClaim:
    """On CUDA, the peak memory of a backend's call is at most that of a call of `against`; both are exact counts."""

    backend: str
    phase: str
    case: str
    dtype: str
    against: str = REFERENCE
    operator: str = "lltm"

    def text(self) -> str:
        """The claim in words."""
        where = f"{self.phase} of {self.operator} at {self.case} in {self.dtype}, cuda"
        return f"`{self.backend}` allocates no more at its peak than `{self.against}`: {where}"

    def judged(self, rows: list[Row]) -> tuple[str, str]:
        """(verdict, figure)"""
        place = {"phase": self.phase, "case": self.case, "operator": self.operator, "dtype": self.dtype}
        found = [
            find(rows, backend=name, device="cuda", clock="wall", **place) for name in (self.backend, self.against)
        ]
        own, other = (row["peak_bytes"] if row and "peak_bytes" in row else None for row in found)
        if own is None or other is None:
            return NOT_MEASURED, "-"
        return (MET if own <= other else NOT_MET), f"{own / other:.3f} of {other:,} bytes"


_PHASES = (FORWARD, FORWARD_AND_BACKWARD)
_CUDA: dict[str, Any] = {"device": "cuda", "threads": None}
_GRAPH: dict[str, Any] = {**_CUDA, "clock": "graph"}
_DTYPES = ("float32", "bfloat16", "float64")
_LLTM_CASES = ("tutorial", "middle", "large")

_CPU = (
    Claim("aten-cpp", FORWARD, 1.0, "tutorial"),
    Claim("aten-cpp", BACKWARD, 1.0, "tutorial"),
    Claim("cpu-fused", FORWARD, 1.7, "tutorial"),
    Claim("cpu-fused", BACKWARD, 1.5, "tutorial"),
    Claim("cpu-fused", FORWARD, 1 / 1.1, "middle", against=PRODUCTS_ALONE),
    Claim("cpu-fused", BACKWARD, 1 / 1.1, "middle", against=PRODUCTS_ALONE),
    Claim("cpu-fused", FORWARD, 2.3, "tutorial", operator="lltm_sequence", threads=2),
    Claim("cpu-fused", BACKWARD, 2.5, "tutorial", operator="lltm_sequence", threads=2),
)

# The tutorial's table on the GPU: its kernel takes 0.69 of Python's time forward, and 0.74 backward.
_TUTORIAL = tuple(
    Claim(backend, phase, 1 / share, "tutorial", **_CUDA)
    for backend in ("cuda-raw-pointer", "cuda-accessor")
    for phase, share in ((FORWARD, 0.69), (BACKWARD, 0.74))
)

# The time of a small cell is the time of the host. The claims: half of a compiled cell's time, 0.4 of autograd's, and
# no more than that of PyTorch's own cell, which has one gate more.
_SMALL = tuple(
    Claim("cuda-fused", phase, least, "tutorial", against=against, dtype=dtype, **_CUDA)
    for dtype in _DTYPES
    for phase in _PHASES
    for against, least in (("torch-compile", 2.0), (REFERENCE, 2.5), ("nn.LSTMCell", 1.0))
)

# The GPU's own time: never more than that of the compiled reference, and near the floor where the floor is high.
_KERNELS = (
    *(
        Claim("cuda-fused", phase, 1.0, case, against="torch-compile", dtype=dtype, **_GRAPH)
        for case in _LLTM_CASES
        for dtype in _DTYPES
        for phase in _PHASES
    ),
    *(
        Claim("cuda-fused", phase, 1 / 1.15, "large", against=FLOOR, dtype=dtype, **_GRAPH)
        for dtype in _DTYPES
        for phase in _PHASES
    ),
)

_MEMORY = tuple(
    MemoryClaim("cuda-fused", FORWARD_AND_BACKWARD, case, dtype) for case in _LLTM_CASES for dtype in _DTYPES
)

# Sequences: against a loop of Python cells, and against cuDNN's network: per gate at the tutorial's sizes, since it has
# four gates, and as it is for wider states.
_SEQUENCES = (
    *(
        Claim("cuda-fused", phase, 5.0, "tutorial", operator="lltm_sequence", dtype=dtype, **_CUDA)
        for dtype in ("float32", "bfloat16")
        for phase in _PHASES
    ),
    *(
        Claim("cuda-fused", phase, 4 / 3, "tutorial", "nn.LSTM", operator="lltm_sequence", dtype="bfloat16", **_GRAPH)
        for phase in _PHASES
    ),
    *(
        Claim("cuda-fused", phase, 1.0, case, "nn.LSTM", operator="lltm_sequence", dtype=dtype, **_GRAPH)
        for dtype, cases in (
            ("float32", ("layer-128", "layer-256", "layer-512")),
            ("bfloat16", ("layer-128", "layer-256", "layer-512", "layer-1024")),
        )
        for case in cases
        for phase in _PHASES
    ),
)

_OTHER_OPERATORS = (
    # 85% of the bandwidth of a copy.
    Claim("cuda-fused", FORWARD, 0.85, "large", against=FLOOR, operator="layer_norm", dtype="bfloat16", **_GRAPH),
    *(
        Claim(backend, phase, 1.0, case, against=against, operator=operator, dtype=dtype, **_GRAPH)
        for against in ("torch-native", "torch-compile")
        for operator, backend, cases in (
            ("layer_norm", "cuda-fused", ("tokens", "middle", "large")),
            ("mlp", "cuda-fused", ("digits", "middle", "large")),
        )
        for case in cases
        for dtype in ("float32", "bfloat16")
        for phase in _PHASES
    ),
)

#: In groups: the tutorial's own gains, the gains of the fused passes on the CPU, and the gains that justify kernels on
#: the GPU.
CLAIMS: tuple[Claim | MemoryClaim, ...] = (
    *_CPU,
    *_TUTORIAL,
    *_SMALL,
    *_KERNELS,
    *_MEMORY,
    *_SEQUENCES,
    *_OTHER_OPERATORS,
)
