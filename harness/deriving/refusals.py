"""What a reference must be, before anything is judged by it: deterministic, differentiable, right in float64."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from harness.deriving.chosen_gradient import AUTOGRAD, NONE, advice
from harness.deriving.wording import first_line, name_of, named
from harness.errors import UsageError
from spec.contract import Draw, Operator, Sizes
from spec.derived import Reference
from spec.modes import EagerMode
from spec.rounding import knows
from spec.steps import has_steps

#: How often a reference is called again with the same arguments.
_REPEATED = 3


def refuse_call(where: str, reference: Reference, inputs: Sequence[Tensor]) -> None:
    """Raise UsageError, with what was found and what to do, if a call of the reference is not as it should be."""
    given = [tensor.clone() for tensor in inputs]
    try:
        raw = reference.call(reference.function, *given)
        first = reference.forward(*(tensor.clone() for tensor in inputs)) if _is_result(raw) else ()
    except Exception as error:
        raise UsageError(
            f"{where} raised {first_line(error)}, but should return tensors: pass --example FILE.py:FUNCTION, a "
            "function that returns the arguments of a call that it takes"
        ) from error
    for name, now, was in zip(reference.tensors, given, inputs, strict=True):
        if not torch.equal(now.nan_to_num(), was.nan_to_num()):
            raise UsageError(f"{where} changed {name}, but should leave its arguments as they are: copy it first")
    if not _is_result(raw):
        raise UsageError(f"{where} returned {named(raw)}, but should return a tensor or a tuple of tensors: wrap it")
    for place, result in enumerate(first):
        name = "output" if len(first) == 1 else f"output_{place}"
        if result.is_complex() or (result.is_floating_point() and result.dtype != torch.float64):
            raise UsageError(f"{where} returned {name} in {name_of(result.dtype)}, but should return {_should(result)}")
    for _ in range(_REPEATED):
        again = reference.forward(*(tensor.clone() for tensor in inputs))
        if len(again) != len(first) or not all(map(_equal, again, first)):
            raise UsageError(
                f"{where} returned other values for the same arguments, but should be deterministic: pass what is "
                "random, such as a mask, as an argument"
            )


def _is_result(raw: Any) -> bool:
    return isinstance(raw, Tensor) or (
        isinstance(raw, tuple | list) and len(raw) > 0 and all(isinstance(part, Tensor) for part in raw)
    )


def _should(result: Tensor) -> str:
    if result.is_floating_point():
        return "the dtype that it is given: cast back with .to(x.dtype)"
    return "real numbers, integers or truth values: return torch.view_as_real of it"


def _equal(one: Tensor, other: Tensor) -> bool:
    return one.shape == other.shape and torch.equal(one.nan_to_num(), other.nan_to_num())


def refuse(where: str, operator: Operator, sizes: Sizes) -> bool:
    """Raise UsageError if the reference cannot judge: it is no differentiable function whose rounding is known.

    Returns whether it rounds to whole numbers.
    """
    draw = Draw(1)
    inputs = tuple(arg.ordinary(sizes, draw) for arg in operator.inputs)
    inputs = tuple(
        x if arg.is_floating else arg.cast(x, torch.float64) for arg, x in zip(operator.inputs, inputs, strict=True)
    )
    has_steps = _refuse_unknown(where, operator, inputs)
    _refuse_gradient(where, operator, inputs)
    return has_steps


class _Seen(EagerMode):  # type: ignore[no-untyped-call]
    """The operations whose rounding the model does not know, those that draw random numbers, the dtypes besides float64
    that were computed, and whether any operation has steps."""

    def __init__(self) -> None:
        super().__init__()
        self.unknown: dict[str, None] = {}
        self.random: dict[str, None] = {}
        self.narrow: dict[torch.dtype, None] = {}
        self.has_steps = False

    def __torch_dispatch__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        self.has_steps = self.has_steps or has_steps(func, args)
        if torch.Tag.nondeterministic_seeded in getattr(func, "tags", ()):
            self.random[str(func)] = None
        parts = result if isinstance(result, tuple | list) else (result,)
        for part in (each for each in parts if isinstance(each, Tensor)):
            if part.is_floating_point() and part.dtype != torch.float64:
                self.narrow[part.dtype] = None
            elif (part.is_floating_point() or part.is_complex()) and not knows(func):
                self.unknown[str(func)] = None
        return result


def _refuse_unknown(where: str, operator: Operator, inputs: tuple[Tensor, ...]) -> bool:
    """Raise UsageError if an operation is not modelled; returns whether any has steps."""
    with torch.no_grad(), _Seen() as seen:
        outputs = operator.forward(*inputs)
        try:
            if operator.has_gradient:
                operator.evaluated(inputs, tuple(torch.ones_like(y) for y in outputs if y.is_floating_point()))
        except Exception as error:
            raise UsageError(
                f"{where} is not differentiable: its gradient raised {first_line(error)}. The reference should be made "
                "of differentiable operations"
            ) from error
    if seen.random:
        raise UsageError(
            f"{where} draws random numbers by {', '.join(seen.random)}, but should be deterministic: leave it out, "
            "call .eval() on a module, or pass what is random, such as a mask, as an argument"
        )
    if seen.narrow:
        raise UsageError(
            f"{where} computes in {', '.join(map(name_of, seen.narrow))} whatever the dtype of its arguments is, but "
            "should compute in that dtype, .to(x.dtype), or in float32, .float()"
        )
    if seen.unknown:
        raise UsageError(
            f"{where} uses {', '.join(seen.unknown)}, whose rounding errors are not modelled: write it with products, "
            "sums and elementwise functions"
        )
    return bool(seen.has_steps)


def _real_results(operator: Operator) -> Callable[..., tuple[Tensor, ...]]:
    """The reference without its integers and truth values, of which gradcheck takes differences."""
    return lambda *inputs: tuple(y for y in operator.forward(*inputs) if y.is_floating_point())


def _refuse_gradient(where: str, operator: Operator, inputs: tuple[Tensor, ...]) -> None:
    pairs = zip(operator.inputs, inputs, strict=True)
    leaves = tuple(tensor.clone().requires_grad_(arg.differentiable) for arg, tensor in pairs)
    outputs = operator.forward(*leaves)
    for arg, output in zip(operator.outputs, outputs, strict=True):
        if arg.is_floating and operator.has_gradient and not output.requires_grad:
            raise UsageError(
                f"{where}: {arg.name} does not depend on its arguments through differentiable operations, so there is "
                "no gradient: remove detach, no_grad, rounding or .item() from the reference; or, if no gradient is to "
                f"be judged, pass --forward-only or write {advice(where, NONE)} below it"
            )
        if not bool(output.isfinite().all()):
            raise UsageError(
                f"{where}: {arg.name} was inf or NaN for some ordinary values, but should be finite: mend the "
                "reference there (a row that is masked throughout?), or pass an --example whose values lie where it is "
                "finite"
            )
    if not (operator.has_gradient and operator.is_derivative):
        return
    try:
        torch.autograd.gradcheck(_real_results(operator), leaves, fast_mode=True)
    except Exception as error:
        lines = [line.rstrip(" ,:") for line in str(error).splitlines() if line.strip()][:1]
        raise UsageError(
            f"{where}: autograd's gradient is not that of finite differences in float64 ({' '.join(lines)}): a "
            "backward of its own is wrong, or .item(), detach or a comparison hides how a result depends on an "
            "argument. If it is meant to be another one, as a straight-through estimator's, write "
            f"{advice(where, AUTOGRAD)} below the reference"
        ) from error
