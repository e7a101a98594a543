"""The closed-form gradient agrees with autograd's through `forward`: two derivations of one thing, in float64."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from spec.contract import Case, Draw, Family, Operator

EPS = torch.finfo(torch.float64).eps

#: The two compute the same terms in another order; this many roundings may lie between them.
ROUNDINGS = 32

Vjp = Callable[[tuple[Tensor, ...], tuple[Tensor, ...]], tuple[Tensor, ...]]


def largest(tensor: Tensor) -> float:
    """The largest absolute value; 0 of an empty tensor."""
    return float(tensor.abs().max()) if tensor.numel() else 0.0


def by_autograd(operator: Operator, inputs: tuple[Tensor, ...], cotangents: tuple[Tensor, ...]) -> dict[str, Tensor]:
    """The gradient of each differentiable input, by its name."""
    pairs = zip(operator.inputs, inputs, strict=True)
    leaves = {arg.name: t.clone().requires_grad_(arg.differentiable) for arg, t in pairs}
    wanted = {arg.name: leaves[arg.name] for arg in operator.inputs if arg.differentiable}
    # An output of no steps, for example, depends on no input.
    found = zip(operator.forward(*leaves.values()), cotangents, strict=True)
    outputs, gs = zip(*((y, g) for y, g in found if y.requires_grad), strict=True)
    gradients = torch.autograd.grad(outputs, [*wanted.values()], gs, allow_unused=True, materialize_grads=True)
    return dict(zip(wanted, gradients, strict=True))


def disagreements(operator: Operator, vjp: Vjp, case: Case, family: Family) -> dict[str, float]:
    """For each input, the largest distance of `vjp` from autograd, in roundings.

    One rounding is that of the largest element or of 1, plus the change of autograd's own gradient when each element of
    the inputs is rounded once. If that change is large, the gradient is ill-conditioned, and no formula can do better.
    """
    draw = Draw(0)
    inputs = tuple(family.make(case.sizes, draw, torch.float64).values())
    cotangents = tuple(draw.normal(tuple(output.shape)) for output in operator.forward(*inputs))
    expected = by_autograd(operator, inputs, cotangents)
    rounded = tuple(
        t * (1 + EPS * draw.choice(tuple(t.shape), (-1.0, 1.0))) if t.is_floating_point() else t for t in inputs
    )
    nearby = by_autograd(operator, rounded, cotangents)

    units = {}
    with torch.no_grad():
        for arg, actual in zip(operator.inputs, vjp(inputs, cotangents), strict=True):
            if arg.differentiable:
                reference = expected[arg.name]
                assert actual.shape == reference.shape, f"d_{arg.name}"
                rounding = EPS * max(1.0, largest(reference)) + largest(nearby[arg.name] - reference)
                units[arg.name] = largest(actual - reference) / rounding
    return units


def agrees(units: dict[str, float]) -> bool:
    """Whether every gradient is within the allowance; a NaN is not."""
    return all(unit <= ROUNDINGS for unit in units.values())


def rejects(operator: Operator, vjp: Vjp) -> bool:
    """Whether the comparison sees that `vjp` is wrong, on a small case of ordinary values."""
    return not agrees(disagreements(operator, vjp, operator.case("small"), operator.family("normal")))


def test_the_closed_form_is_autograds(operator: Operator, case: Case, families: list[Family]) -> None:
    found = {family.name: disagreements(operator, operator.vjp, case, family) for family in families}
    wrong = {name: units for name, units in found.items() if not agrees(units)}
    assert not wrong


def test_a_gradient_that_is_off_by_1e_10_is_rejected(operator: Operator) -> None:
    for index, arg in enumerate(operator.inputs):
        if arg.differentiable:

            def wrong(inputs, cotangents, index=index):
                gradients = list(operator.vjp(inputs, cotangents))
                gradients[index] = gradients[index] * (1 + 1e-10)
                return tuple(gradients)

            assert rejects(operator, wrong), arg.name


def test_a_gradient_that_forgets_an_output_is_rejected(operator: Operator) -> None:
    for index, arg in enumerate(operator.outputs):

        def wrong(inputs, cotangents, index=index):
            kept = [torch.zeros_like(g) if i == index else g for i, g in enumerate(cotangents)]
            return operator.vjp(inputs, tuple(kept))

        assert rejects(operator, wrong), arg.name
