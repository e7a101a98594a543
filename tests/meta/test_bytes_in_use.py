"""Whether malloc counts its bytes is no question of what else happens in the process."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest
import torch

from harness.judging import bytes_in_use


@pytest.fixture
def _eager_collector() -> Iterator[None]:
    """Garbage is collected at almost every allocation of an object."""
    before = gc.get_threshold()
    gc.set_threshold(1, 1, 1)
    yield
    gc.set_threshold(*before)


@pytest.mark.usefixtures("_eager_collector")
def test_garbage_that_is_freed_meanwhile_does_not_hide_the_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run of the suite found that malloc does not count, once: garbage was collected between the two looks."""
    gc.disable()
    garbage: list[object] = [torch.ones(2**24)]
    garbage.append(garbage)
    del garbage
    real = bytes_in_use.on_host

    def look() -> int:
        seen = real()
        gc.enable()  # from the first look on
        return seen

    monkeypatch.setattr(bytes_in_use, "on_host", look)
    assert bytes_in_use.unaccountable.__wrapped__() == ""


def test_a_malloc_that_does_not_count_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bytes_in_use, "on_host", lambda: 0)
    assert bytes_in_use.unaccountable.__wrapped__().startswith("malloc is not glibc's")


def test_a_library_without_the_function_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def lacks() -> int:
        raise OSError("this C library has no mallinfo2")

    monkeypatch.setattr(bytes_in_use, "on_host", lacks)
    assert bytes_in_use.unaccountable.__wrapped__() == "this C library has no mallinfo2"
