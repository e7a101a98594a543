"""The floating-point mode of each kind of thread and the settings of OpenMP are read, and are restored."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from collections.abc import Iterator

import pytest
import torch

from harness.judging import floating_point, openmp
from harness.judging.process_state import watched

pytestmark = pytest.mark.skipif(not floating_point.is_known(), reason="needs glibc on x86-64 or aarch64")

KEPT = "denormals kept, rounding to nearest, no exceptions trapped"
LIBM = ctypes.CDLL("libm.so.6")
UPWARD = 0x400000 if sys.platform == "linux" and "aarch64" in torch.__config__.show() else 0x800
DIVISION_BY_ZERO = 0x2 if UPWARD == 0x400000 else 0x4


@pytest.fixture(autouse=True)
def _several_threads() -> Iterator[None]:
    """Three threads, with the usual mode; afterwards as before."""
    mode, threads = floating_point.read(), torch.get_num_threads()
    torch.set_num_threads(3)
    floating_point.of_openmp_threads()
    yield
    floating_point.write(mode)
    floating_point.give_openmp_threads(list(openmp.libraries().values()))
    torch.set_num_threads(threads)


def _on_openmp_threads(mode: floating_point.Mode) -> None:
    """Give the mode to the OpenMP threads alone."""
    was = floating_point.read()
    floating_point.write(mode)
    floating_point.give_openmp_threads(list(openmp.libraries().values()))
    floating_point.write(was)


def test_the_calling_thread_is_read_and_restored() -> None:
    was = floating_point.read()
    assert str(was) == f"({KEPT})"
    with watched("cpu") as watch:
        torch.set_flush_denormal(True)
        LIBM.fesetround(UPWARD)
        ((name, now, before),) = watch.changes()
        assert name == "floating-point mode of the calling thread"
        assert now == "(denormal results and inputs flushed to 0, rounding up, no exceptions trapped)"
        assert before == f"({KEPT})"
    assert floating_point.read() == was


def test_traps_are_a_part_of_the_mode() -> None:
    with watched("cpu") as watch:
        assert LIBM.feenableexcept(DIVISION_BY_ZERO) == 0
        assert str(floating_point.read()) == "(denormals kept, rounding to nearest, exceptions trapped)"
        watch.put_back()
        assert LIBM.fegetexcept() == 0


def test_exceptions_that_occurred_are_no_change() -> None:
    with watched("cpu") as watch:
        LIBM.feraiseexcept(DIVISION_BY_ZERO)
        assert list(watch.changes()) == []


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda mode: mode.flushing(), "denormal results and inputs flushed to 0"),
        (lambda _: _rounding(UPWARD), "rounding up"),
        (lambda _: _rounding(0x800000 if UPWARD == 0x400000 else 0x400), "rounding down"),
        (lambda _: _rounding(0xC00000 if UPWARD == 0x400000 else 0xC00), "rounding towards 0"),
    ],
    ids=["flushed", "up", "down", "towards 0"],
)
def test_openmp_threads_are_read_and_restored(spoil: object, said: str) -> None:
    assert callable(spoil)
    with watched("cpu") as watch:
        _on_openmp_threads(spoil(floating_point.read()))
        changes = list(watch.changes())
        usual = floating_point.USUAL
        assert changes == [("floating-point mode of torch's OpenMP threads", f"threads 1 to 2: {said}", usual)]
    assert floating_point.of_openmp_threads() == floating_point.USUAL


def _rounding(way: int) -> floating_point.Mode:
    was = floating_point.read()
    assert LIBM.fesetround(way) == 0
    found = floating_point.read()
    floating_point.write(was)
    return found


def test_openmp_threads_that_torch_does_not_use_now_are_restored_too() -> None:
    with watched("cpu"):
        _on_openmp_threads(floating_point.read().flushing())
        torch.set_num_threads(1)
    torch.set_num_threads(3)
    assert floating_point.of_openmp_threads() == floating_point.USUAL


def test_threads_that_an_unusual_state_starts_are_usual() -> None:
    with watched("cpu") as watch:
        watch.unusual()
        assert torch.get_num_threads() == 4
        assert floating_point.of_openmp_threads() == floating_point.USUAL
        assert list(watch.changes()) == []


def test_the_thread_of_autograd_is_read_and_restored() -> None:
    was = floating_point.read()
    floating_point.on_autograds_thread("cpu", lambda: floating_point.write(was.flushing()))
    assert floating_point.of_autograds_thread("cpu") == was.flushing()
    floating_point.on_autograds_thread("cpu", lambda: floating_point.write(was))
    assert floating_point.of_autograds_thread("cpu") == was


_POOL = """
import torch, warnings
from harness.judging import floating_point
warnings.simplefilter("ignore")
print(floating_point.of_interop_threads())
names = floating_point._names_of_threads()
assert floating_point._POOL not in names, "the pool was started by the judge"
torch.set_flush_denormal({flushes})
floating_point._in_tasks()(torch.ones(5), 1)  # a new thread has the mode of the one that starts it
torch.set_flush_denormal(False)
print(floating_point.of_interop_threads())
"""


@pytest.mark.parametrize(
    ("flushes", "said"),
    [(True, "at least one thread: denormal results and inputs flushed to 0"), (False, floating_point.USUAL)],
)
def test_threads_for_tasks_are_read_if_they_exist(flushes: bool, said: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _POOL.format(flushes=flushes)], capture_output=True, text=True, check=False, timeout=100
    )
    assert done.stdout.splitlines() == [floating_point.USUAL, said], done.stderr


def test_settings_of_openmp_are_read_and_restored() -> None:
    ((name, library),) = openmp.libraries().items()
    was = openmp.settings(library)
    with watched("cpu") as watch:
        library.omp_set_schedule(3, 7)
        library.omp_set_max_active_levels(5)
        ((what, now, before),) = watch.changes()
        assert what == f"OpenMP settings of {name}"
        assert now == "max active levels=5, kind of schedule=3, chunk of schedule=7"
        assert before.startswith(f"max active levels={was['max active levels']}, ")
    assert openmp.settings(library) == was
