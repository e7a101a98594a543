"""The compiled errors of `spec.noise` are those of numpy to the last bit, and numpy's where there is no compiler."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
import torch
from torch import Tensor

from harness.building import build
from harness.discovery import operator
from harness.errors import Unavailable
from harness.judging import compiled_noise, oracle, stored
from harness.judging.scenarios import smallest
from spec import noise
from spec.noise import Noise

needs_compiler = pytest.mark.skipif(shutil.which("g++") is None, reason="needs a compiler")


@pytest.fixture(autouse=True)
def by_numpy_again() -> Iterator[None]:
    yield
    noise.use(None)


def _errs(seed: int, runs: int, columns: int, kind: str, extreme: bool) -> Tensor:
    """Values with errors: some are 0, infinite or NaN, some amplitudes are 0."""
    generator = torch.Generator().manual_seed(seed)
    values = torch.randn(runs, columns, dtype=torch.float64, generator=generator)
    values[:, ::7], values[:, 1::31], values[:, 2::37] = 0.0, torch.inf, torch.nan
    rows = runs if seed % 2 else 1
    amplitude = torch.rand(rows, columns, dtype=torch.float64, generator=generator)
    amplitude[:, ::5] = 0.0
    exact = torch.rand(rows, columns, generator=generator) > 0.5 if kind != "plain" else None
    beside = torch.randn(1, columns, dtype=torch.float64, generator=generator) if kind == "beside" else None
    Noise(seed, runs).add(values, amplitude, 1e-3, seed % 99, exact, beside, extreme)
    return values


@needs_compiler
@pytest.mark.parametrize("kind", ["plain", "exact", "beside"])
@pytest.mark.parametrize("extreme", [False, True])
def test_it_adds_the_errors_of_numpy_to_the_last_bit(kind: str, extreme: bool) -> None:
    rng = Random(0)
    for _ in range(12):
        seed, runs = rng.randrange(99), rng.choice((1, 2, 3, 16))
        columns = rng.choice((1, 8, 255, 4097, 40_001))  # one part, and parts of 2^15 / 8
        compiled_noise.use(False)
        wanted = _errs(seed, runs, columns, kind, extreme)
        compiled_noise.use(True)
        assert noise._compiled is not None
        found = _errs(seed, runs, columns, kind, extreme)
        assert torch.equal(found.isnan(), wanted.isnan())
        assert torch.equal(found.nan_to_num(), wanted.nan_to_num())


@needs_compiler
@pytest.mark.parametrize(("folder", "compiled"), [("store", True), (None, False)])
def test_it_is_used_where_the_store_is(tmp_path: Path, folder: str | None, compiled: bool) -> None:
    """So it is not where foreign code can reach the folder that the library is in."""
    contract = operator("mlp")
    oracle.forget()
    with stored.used(None if folder is None else tmp_path / folder):
        oracle.expected(contract, smallest(contract), torch.float32)
    assert (noise._compiled is not None) == compiled


def test_without_a_compiler_numpy_adds_them(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: object) -> Path:
        raise Unavailable("no C++ compiler")

    monkeypatch.setattr(build, "build", missing)
    monkeypatch.setattr(compiled_noise, "_built", compiled_noise._built.__wrapped__)
    compiled_noise.use(True)
    assert noise._compiled is None
