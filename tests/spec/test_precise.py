"""`spec.precise` has more digits than float64: compared with 50-digit arithmetic that shares no code with it."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from spec import lltm, mlp, precise
from spec.contract import Operator
from tests.spec.fifty_digits import Exactly, drawn, exact, finite, mp
from tests.spec.test_lltm_against_mpmath import lltm_exactly
from tests.spec.test_mlp_against_mpmath import mlp_exactly

pytestmark = pytest.mark.skipif(
    not precise.AVAILABLE, reason="not run: numpy's longdouble has no more digits than float64 on this platform"
)

BY_HAND = [pytest.param(lltm.OPERATOR, lltm_exactly, id="lltm"), pytest.param(mlp.OPERATOR, mlp_exactly, id="mlp")]

RESOLVED = 1e-25


def errors(operator: Operator, exactly: Exactly, family: str, beyond: bool) -> list[float]:
    """The error of every element, of outputs and gradients, in units of the last place of the exact value.

    50 digits suffice for sums of numbers near 1. Values below `RESOLVED` are not compared.
    """
    inputs, cotangents = drawn(operator, operator.case("small"), operator.family(family))

    def evaluate() -> tuple[Tensor, ...]:
        return (*operator.forward(*inputs), *operator.vjp(inputs, cotangents))

    found = evaluate()
    if beyond:
        values = precise.precisely(evaluate)
        assert values is not None
        found = values.exact
    truth = exactly(inputs, cotangents)
    names = [*(arg.name for arg in operator.outputs), *(f"d_{arg.name}" for arg in operator.inputs)]
    return [
        float(abs(x - y) / mp.mpf(float(np.spacing(max(abs(float(y)), RESOLVED)))))
        for name, tensor in zip(names, found, strict=True)
        for xs, ys in zip(exact(tensor), truth[name], strict=True)
        for x, y in zip(xs, ys, strict=True)
    ]


@pytest.mark.parametrize(("contract", "exactly"), BY_HAND)
def test_every_element_is_rounded_once(contract: Operator, exactly: Exactly) -> None:
    for family in finite(contract)[:3]:
        # Half a unit is one rounding to float64; the rest is for the roundings of the long double itself.
        assert max(errors(contract, exactly, family.name, beyond=True)) <= 0.51, family.name
    assert max(errors(contract, exactly, "normal", beyond=False)) > 1.0, "float64 itself does as well: no evidence"


def normal(*shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def test_moves_keep_both_parts() -> None:
    third = normal(3, 4)

    def evaluate() -> tuple[Tensor, ...]:
        parts = (third * third).t().chunk(2)
        moved = torch.cat(
            [torch.stack([*parts[1].unbind(), *parts[0].unbind()]), torch.zeros(1, 3, dtype=torch.float64)]
        )
        return (moved.sum(0) - (third * third).sum(1),)

    found = precise.precisely(evaluate)
    assert found is not None
    # The same four squares in another order: the difference is a rounding of long double, not one of float64.
    assert float(found.exact[0].abs().max()) <= 2.0**-61


def test_what_is_not_listed_has_no_precise_value() -> None:
    assert precise.precisely(lambda: (torch.special.bessel_j0(normal(2)),)) is None
    assert precise.precisely(lambda: (normal(300, 300) @ normal(300, 300),)) is None


def test_what_overflows_in_float64_stays_as_float64_has_it() -> None:
    huge = torch.tensor([1e300, 1.0], dtype=torch.float64)
    found = precise.precisely(lambda: (huge * huge, huge * huge / huge))
    assert found is not None
    assert found.exact[0].tolist() == [float("inf"), 1.0]
    assert found.exact[1].tolist() == [float("inf"), 1.0]


def test_what_underflows_in_float64_is_known_to_lose_less() -> None:
    far = torch.tensor([-710.0, 1.0], dtype=torch.float64)
    found = precise.precisely(lambda: (torch.sigmoid(far),))
    assert found is not None
    assert found.exact[0][0] == 0, "1 + exp(710) overflows in float64"
    assert 4.4e-309 < found.losing_less[0][0] < 4.6e-309


def test_what_is_written_through_a_view_is_not_precise() -> None:
    """The low part of the whole would not change with that of its view."""
    x = normal(4, 3)

    def through_a_view() -> tuple[Tensor, ...]:
        whole = x * 2
        whole[1:].mul_(3)
        return (whole,)

    assert precise.precisely(through_a_view) is None


def test_what_is_written_to_a_whole_is_precise() -> None:
    x = normal(4, 3)

    def to_the_whole() -> tuple[Tensor, ...]:
        whole = torch.zeros_like(x)
        whole.copy_(x / 3)
        whole.add_(1)
        return (whole.to(torch.float64),)

    found = precise.precisely(to_the_whole)
    assert found is not None
    assert torch.equal(found.exact[0], torch.from_numpy((1 + x.numpy().astype(np.longdouble) / 3).astype(np.float64)))
