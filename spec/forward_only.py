"""A contract without its gradient, for a kernel that has a forward alone: one for inference."""

from __future__ import annotations

from dataclasses import replace

from torch import Tensor

from spec.contract import Operator


def forward_only(operator: Operator, name: str) -> Operator:
    """The contract `name`, whose forward, sizes and values are those of `operator`, and which asks no gradient."""
    forms = tuple(_without_gradient(form, name) for form in operator.forms)
    return replace(_without_gradient(operator, name), forms=forms)


def _without_gradient(form: Operator, name: str) -> Operator:
    return replace(
        form,
        name=name,
        forms=(),
        inputs=tuple(replace(arg, differentiable=False) for arg in form.inputs),
        vjp=_none,
        both=None,
        unspecified=None,
        saved=(),
        flops=(form.flops[0], "0"),
        elementwise=(form.elementwise[0], "0"),
    )


def _none(inputs: tuple[Tensor, ...], _: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    return tuple(each.new_empty(0) for each in inputs)
