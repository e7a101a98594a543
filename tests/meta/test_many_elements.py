"""many-elements with small cases on the CPU: which cases it judges, and what it says of memory that is not there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from harness import discovery
from harness.errors import Failure
from harness.judging.subject import Subject
from harness.properties import many_elements
from spec.contract import Case, Operator

OPERATOR = discovery.operators()["lltm"]
#: Rows of the small stand-ins for a large case and a largest one.
LARGE, LARGEST = 20, 30


def _case(batch: int, tag: str) -> Case:
    return Case(tag, {"batch": batch, "input_features": 3, "state_size": 5}, "a stand-in", frozenset({tag}))


@pytest.fixture
def operator(monkeypatch: pytest.MonkeyPatch) -> Operator:
    monkeypatch.setattr(many_elements, "_free_memory", lambda needed=0: 2**40)
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: None)
    small = (case for case in OPERATOR.cases if "small" in case.tags)
    return replace(OPERATOR, cases=(*small, _case(LARGE, "large"), _case(LARGEST, "largest")))


def _judged(operator: Operator, function: Callable[..., Any]) -> dict[str, Any]:
    return many_elements.check(Subject(operator, "test", "cpu", torch.float32, function))


def _from_rows(limit: int, otherwise: Callable[[tuple[Tensor, ...]], tuple[Tensor, ...]]) -> Callable[..., Any]:
    """The reference below so many rows, and `otherwise` of its outputs from there on."""

    def function(*tensors: Tensor) -> tuple[Tensor, ...]:
        outputs = OPERATOR.forward(*tensors)
        return outputs if tensors[0].shape[0] < limit else otherwise(outputs)

    return function


def _without_memory(outputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 12.30 GiB.")


def test_both_cases_are_judged(operator: Operator) -> None:
    figures = _judged(operator, OPERATOR.forward)
    assert figures["scenarios"] == 2
    assert "left out" not in figures


@pytest.mark.parametrize("rows", [LARGE, LARGEST])
def test_a_wrong_last_row_is_noticed(operator: Operator, rows: int) -> None:
    def wrong(outputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        return tuple(torch.cat([output[:-1], output[-1:] * 1.5]) for output in outputs)

    with pytest.raises(Failure, match=f"batch={rows}"):
        _judged(operator, _from_rows(rows, wrong))


def test_only_the_largest_case_may_run_out_of_memory(operator: Operator) -> None:
    figures = _judged(operator, _from_rows(LARGEST, _without_memory))
    assert figures["left out"] == {"largest": "needs more than the 1024 GB of free device memory"}
    with pytest.raises(Failure, match="forward raised OutOfMemoryError"):
        _judged(operator, _from_rows(LARGE, _without_memory))


def test_the_largest_case_is_left_out_where_its_tensors_do_not_fit(
    operator: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(many_elements, "_free_memory", lambda needed=2**40: 2**40 if needed == 2**40 else 0)
    figures = _judged(operator, OPERATOR.forward)
    assert figures["left out"] == {"largest": "needs 0 GB of free device memory, there are 0"}
    assert figures["scenarios"] == 1


def test_the_largest_case_of_lltm_fits_in_half_types_on_a_gpu_of_140_gigabytes() -> None:
    (largest,) = (case for case in OPERATOR.cases if "largest" in case.tags)
    assert largest.sizes["batch"] * largest.sizes["state_size"] > 2**31
    subject = Subject(OPERATOR, "test", "cuda", torch.float16, OPERATOR.forward)
    assert many_elements._bytes(subject, largest.sizes) < 130 * 2**30
