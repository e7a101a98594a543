"""What is read from a signature: shapes and dtypes of annotations, attributes in between tensors, and what is asked."""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any

import pytest
import torch
from torch import Tensor

from harness.deriving.contract import derive_from
from harness.deriving.parameters import parameters_of
from harness.errors import UsageError
from harness.judging.judge import judge
from harness.judging.subject import Subject
from harness.properties import all_properties
from harness.report.cell import FAIL, PASS


class Annotation:
    """What an annotation of jaxtyping has, which is all that is read of it."""

    def __init__(self, dim_str: str, *dtypes: str) -> None:
        self.dim_str, self.dtypes = dim_str, dtypes or ("float16", "float32", "float64", "bfloat16")


def annotated(function: Callable[..., Any], **annotations: Annotation) -> Callable[..., Any]:
    copied = FunctionType(function.__code__, function.__globals__, function.__name__)
    copied.__annotations__ = dict(annotations)
    return copied


def scaled(x: Tensor, weight: Tensor) -> Tensor:
    return x * weight


def along(x: Tensor, dim: int, weight: Tensor, eps: float = 1e-6) -> Tensor:
    return x * torch.rsqrt(x.pow(2).mean(dim, keepdim=True) + eps) * weight


def of_parts(x: Tensor, parts: int = 2, weight: Tensor | None = None) -> Tensor:
    assert weight is not None
    return x * weight / parts


@pytest.mark.parametrize("dimension", ["*rows", "...", "#rows"])
def test_any_number_of_dimensions_is_one_and_more_are_found(dimension: str) -> None:
    found = derive_from(annotated(scaled, x=Annotation(f"{dimension} width"), weight=Annotation("width"))).operator
    assert [arg.shape for arg in found.inputs] == [("batch", "width"), ("width",)]
    assert found.inputs[0].any_rank, "the reference takes more leading dimensions"


def test_a_dimension_without_a_name_is_named_after_its_place() -> None:
    found = parameters_of(annotated(scaled, x=Annotation("_ _"), weight=Annotation("_")), "it")
    assert [tensor.shape for tensor in found.tensors] == [("x_0", "x_1"), ("weight_0",)]


def test_an_annotation_restricts_the_dtypes() -> None:
    given = annotated(scaled, x=Annotation("n", "float16", "bfloat16"), weight=Annotation("n"))
    assert parameters_of(given, "it").dtypes == (torch.float16, torch.bfloat16)
    none = annotated(scaled, x=Annotation("n", "float16"), weight=Annotation("n", "float32"))
    with pytest.raises(UsageError, match="no dtype suits all of x, weight: annotate them with Float"):
        parameters_of(none, "it")
    with pytest.raises(UsageError, match=r"x has the dtypes \['complex64'\], but should be real numbers"):
        parameters_of(annotated(scaled, x=Annotation("n", "complex64"), weight=Annotation("n")), "it")


def test_an_attribute_before_a_tensor_is_passed_by_position() -> None:
    found = derive_from(along, (torch.randn(6, 64), -1, torch.randn(64)))
    assert found.reference.positional == ("x", "dim", "weight")
    assert dict(found.reference.attributes) == {"dim": -1}, "eps was left out, and is left out in every call"

    def other(x: Tensor, axis: int, gamma: Tensor) -> Tensor:
        return x / (x.pow(2).mean(axis, keepdim=True) + 1e-6).sqrt() * gamma

    subject = Subject(found.operator, "it", "cpu", torch.float32, other)
    assert judge(subject, all_properties()["forward-parity"]).verdict == PASS, "its parameters have other names"

    def wrong(x: Tensor, axis: int, gamma: Tensor) -> Tensor:
        return x / (x.pow(2).mean(0 * axis, keepdim=True) + 1e-6).sqrt() * gamma

    subject = Subject(found.operator, "it", "cpu", torch.float32, wrong)
    assert judge(subject, all_properties()["forward-parity"]).verdict == FAIL


def test_an_attribute_that_is_left_out_before_a_tensor_has_its_usual_value() -> None:
    found = derive_from(of_parts, {"x": torch.randn(6, 64), "weight": torch.randn(64)})
    assert found.reference.positional == ("x", "parts", "weight")
    assert dict(found.reference.attributes) == {"parts": 2}


def _complex(x: Tensor) -> Tensor:
    return x.real


def _no_tensor(count: int) -> int:
    return count


def _raises() -> None:
    raise ZeroDivisionError("no")


@pytest.mark.parametrize(
    ("function", "example", "says"),
    [
        (scaled, ([torch.ones(2), torch.ones(2)], torch.ones(2)), "x was a list of 2 tensors: pass each tensor as an"),
        (scaled, (torch.ones(2), object()), "weight was an object, but should be a tensor, a number, a flag"),
        (_complex, (torch.ones(2) + 0j,), "x was torch.complex64, but should be of real numbers"),
        (_no_tensor, (3,), "has no parameter that is a tensor, so there is nothing to judge"),
        (torch.nn.Linear(2, 2), (torch.ones(2),), "is an nn.Module, but should be a function of inputs and parameters"),
        (torch.add, (torch.ones(2), torch.ones(2)), "has no signature that Python can read: wrap it"),
        (scaled, 3, r"--example gave 3, but should give the arguments of it: a tuple, or a dict"),
        (scaled, _raises, "--example raised ZeroDivisionError: no, but should return the arguments of it"),
    ],
)
def test_what_cannot_be_read_is_said_with_what_to_do(function: Any, example: Any, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        parameters_of(function, "it", example)


def test_a_dimension_that_is_no_arithmetic_is_named() -> None:
    with pytest.raises(UsageError, match=r"dimension 'a@b' of x should be a name, a number or arithmetic of them"):
        parameters_of(annotated(scaled, x=Annotation("a@b"), weight=Annotation("n")), "it")


def test_an_example_of_another_shape_than_the_annotation_is_refused() -> None:
    given = annotated(scaled, x=Annotation("rows width"), weight=Annotation("width"))
    with pytest.raises(UsageError, match=r"weight was of shape \(8, 1\) in the example, but should be \(width\)"):
        derive_from(given, (torch.randn(6, 8), torch.randn(8, 1)))
