"""torch.func works: grad, vjp, jacrev and vmap (per-sample gradients), with the values of the reference."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from harness.errors import Failure, NotApplicable
from harness.judging.property import INTEGRATION, Property
from harness.judging.scenario import realise
from harness.judging.scenarios import smallest
from harness.judging.subject import CANDIDATE_ERRORS, Subject, one_line
from harness.report.levels import PYTORCH

RELATIVE = 1e-9


def check(subject: Subject) -> dict[str, Any]:
    """Each transform of the candidate against the same transform of the reference."""
    scenario = smallest(subject.operator)
    inputs = tuple(t.detach() for t in subject.realise(scenario).inputs)
    exact = realise(subject.operator, scenario, subject.dtype).to_float64().inputs
    arguments = enumerate(subject.operator.inputs)
    everything = tuple(position for position, arg in arguments if arg.differentiable)

    def loss(function: Callable[..., Any]) -> Callable[..., Tensor]:
        return lambda *args: sum((y * _cotangent(y)).sum() for y in _real(function(*args)))  # type: ignore[return-value]

    transforms: dict[str, Callable[[Callable[..., Any]], Callable[..., Any]]] = {
        "grad": lambda f: torch.func.grad(loss(f), argnums=everything),
        "vjp": lambda f: lambda *args: _vjp(f, args, everything),
        "jacrev": lambda f: torch.func.jacrev(lambda *a: _real(f(*a)), argnums=everything),
        "vmap": lambda f: lambda *args: torch.func.vmap(lambda *a: _tuple(f(*a)))(*_stacked(args)),
        "vmap of grad": lambda f: (
            lambda *args: torch.func.vmap(torch.func.grad(loss(f), argnums=everything))(*_stacked(args))
        ),
    }
    if not everything:
        transforms = {"vmap": transforms["vmap"]}
    for name, transform in transforms.items():
        try:
            found = _flat(transform(subject.function)(*inputs))
        except CANDIDATE_ERRORS as error:
            raise Failure(
                f"torch.func.{name} raised {one_line(error)}, but should work "
                f"(an autograd.Function needs setup_context and a vmap rule) [{scenario.describe(subject.operator)}]"
            ) from error
        for result, y in zip(found, _of_reference(subject, transform, exact, name), strict=True):
            got = result.detach().cpu()
            if not y.is_floating_point():
                if not torch.equal(got, y):
                    raise Failure(
                        f"torch.func.{name} returned other integers or truth values than the reference, but should "
                        f"return the same [{scenario.describe(subject.operator)}]"
                    )
                continue
            error_norm = float((got - y).norm())
            if not error_norm <= RELATIVE * max(float(y.norm()), 1e-300):
                raise Failure(
                    f"torch.func.{name} was off by {error_norm:.2g}, but should equal that of the reference "
                    f"[{scenario.describe(subject.operator)}]"
                )
    return {"transforms": list(transforms)}


def _of_reference(
    subject: Subject, transform: Callable[..., Callable[..., Any]], inputs: tuple[Tensor, ...], name: str
) -> list[Tensor]:
    """What the transform of the reference returns. Raises NotApplicable if a derived contract's has none."""
    try:
        return _flat(transform(subject.operator.forward)(*inputs))
    except Exception as error:
        if not subject.operator.by_reference:
            raise
        raise NotApplicable(
            f"the reference itself cannot be transformed: torch.func.{name} raised {one_line(error)}"
        ) from error


def _vjp(function: Callable[..., Any], args: tuple[Tensor, ...], places: tuple[int, ...]) -> Any:
    """The vjp of the function with respect to the arguments at these places; torch takes real numbers alone."""

    def of_some(*some: Tensor) -> tuple[Tensor, ...]:
        given = dict(zip(places, some, strict=True))
        return _real(function(*(given.get(place, value) for place, value in enumerate(args))))

    made = torch.func.vjp(of_some, *(args[place] for place in places))
    return made[1](tuple(_cotangent(y) for y in made[0]))


def _tuple(value: Any) -> tuple[Tensor, ...]:
    return (value,) if isinstance(value, Tensor) else tuple(value)


def _real(value: Any) -> tuple[Tensor, ...]:
    """The results of real numbers."""
    return tuple(y for y in _tuple(value) if y.is_floating_point())


def _cotangent(y: Tensor) -> Tensor:
    """Different in every element: a normalisation maps a constant cotangent to a gradient of 0, which shows nothing."""
    return torch.linspace(1, 2, y.numel(), dtype=y.dtype, device=y.device).square().reshape(y.shape)


def _stacked(args: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """Two samples of everything, the second scaled so that mixing them up shows."""
    return tuple(torch.stack([t, 0.5 * t if t.is_floating_point() else t]) for t in args)


def _flat(value: Any) -> list[Tensor]:
    return [value] if isinstance(value, Tensor) else [tensor for part in value for tensor in _flat(part)]


PROPERTY = Property(
    "functional-transforms",
    "torch.func.grad, vjp, jacrev and vmap work",
    check,
    view=INTEGRATION,
    level=PYTORCH,
    dtypes=("float64",),
    why_only="a transform is the same code in every dtype",
)
