"""The ordinary values of a derived contract: Gaussian if the reference is finite there, else in the example's range."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from harness import discovery
from harness.deriving.contract import derive, derive_from
from harness.deriving.saving import source
from harness.errors import UsageError
from harness.judging.judge import judge
from harness.judging.subject import Subject
from harness.properties import all_properties
from harness.report.cell import FAIL, NOT_RUN, PASS
from spec.contract import Draw
from tests.meta.deriving import references


def logs(x: Tensor) -> Tensor:
    return x.log().sum(-1)


def area(x: Tensor) -> Tensor:
    return x.atanh() * 2


def divergence(p: Tensor, q: Tensor) -> Tensor:
    return (p * (p / q).log()).sum(-1)


def plain(x: Tensor) -> Tensor:
    return x.exp()


POSITIVE = torch.linspace(0.5, 1.5, 6 * 8).reshape(6, 8)


@pytest.mark.parametrize(
    ("function", "example", "range"),
    [(logs, POSITIVE, ("0.5", "1.5")), (area, 1.8 * (POSITIVE - 1), ("-0.9", "0.9")), (plain, POSITIVE, None)],
)
def test_values_are_uniform_only_where_gaussian_ones_have_no_result(
    function: Callable[..., Any], example: Tensor, range: tuple[str, str] | None
) -> None:
    (arg,) = derive_from(function, (example,)).operator.inputs
    assert arg.uniform == (range is not None)
    if range is not None:
        assert (arg.low, arg.high) == range
        values = arg.ordinary({"batch": 50, "x_1": 9}, Draw(0))
        assert float(range[0]) <= float(values.min()) < float(values.max()) <= float(range[1])


def test_what_is_positive_alone_is_uniform() -> None:
    def product(x: Tensor, p: Tensor) -> Tensor:
        return x * p.log()

    x, p = derive_from(product, (torch.randn(6, 8), POSITIVE)).operator.inputs
    assert not x.uniform
    assert p.uniform


def test_a_function_of_uniform_values_is_judged() -> None:
    contract = derive_from(divergence, (POSITIVE, POSITIVE.flip(0))).operator

    def right(p: Tensor, q: Tensor) -> Tensor:
        for given in (p, q):
            assert bool((given[given.isfinite()] > 0).all()), "outside of the range there is no result"
        return -(p * (q / p).log()).sum(-1)

    def wrong(p: Tensor, q: Tensor) -> Tensor:
        return -(q * (q / p).log()).sum(-1)

    for function, verdict in ((right, PASS), (wrong, FAIL)):
        subject = Subject(contract, "it", "cpu", torch.float32, function)
        assert judge(subject, all_properties()["forward-parity"]).verdict == verdict
    subject = Subject(contract, "it", "cpu", torch.float32, right)
    assert judge(subject, all_properties()["determinism"]).verdict in (PASS, NOT_RUN)


def test_a_range_is_said_and_saved(tmp_path: Path) -> None:
    made = derive(f"{references.__file__}:logarithms", f"{references.__file__}:logarithms_example")
    assert "x has values from 0.5 to 1.5, as in the example; outside is no result" in made.found
    path = tmp_path / "contract.py"
    path.write_text(source(made, tmp_path))
    assert discovery.operators((path,))["logarithms"].inputs == made.operator.inputs


def test_an_example_outside_of_where_it_is_finite_is_refused() -> None:
    with pytest.raises(
        UsageError, match=r"returned inf or NaN for values around 0.*pass an --example whose values lie"
    ):
        derive_from(logs, (torch.randn(6, 8),))


def test_a_row_that_is_masked_throughout_is_named() -> None:
    def masked(x: Tensor, mask: Tensor) -> Tensor:
        return torch.softmax(x.masked_fill(mask, -torch.inf), -1)

    with pytest.raises(UsageError, match=r"output was inf or NaN for some ordinary values.*masked throughout"):
        derive_from(masked, (torch.randn(6, 8), torch.zeros(6, 8, dtype=torch.bool)))


def test_a_mask_of_minus_infinity_has_no_error() -> None:
    """Its -inf stays -inf under the model of rounding, so that causal attention is finite there."""

    def causal(x: Tensor) -> Tensor:
        n = x.shape[-1]
        return torch.softmax(x + torch.full((n, n), -torch.inf, dtype=x.dtype).triu(1), -1)

    contract = derive_from(causal, (torch.randn(3, 8, 8),)).operator

    def other(x: Tensor) -> Tensor:
        return torch.softmax(x + torch.tril(torch.ones(x.shape[-2:], dtype=x.dtype)).log(), -1)

    for function, verdict in ((other, PASS), (lambda x: torch.softmax(x, -1), FAIL)):
        subject = Subject(contract, "it", "cpu", torch.float32, function)
        for property in ("forward-parity", "vjp-parity"):
            assert judge(subject, all_properties()[property]).verdict == verdict


def finite_only(x: Tensor) -> Tensor:
    if not bool(x.isfinite().all()):
        raise ValueError("x was not finite")
    return x.softmax(-1)


def test_rows_that_are_not_finite_are_asked_only_where_the_reference_takes_them() -> None:
    """A reference that refuses them cannot say what is right there."""
    assert "non-finite" not in derive_from(finite_only, (torch.randn(3, 4),)).families
    assert "non-finite" in derive_from(plain, (torch.randn(3, 4),)).families
