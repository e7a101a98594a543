"""Check a contract before it is used to judge implementations.

A contract with a wrong gradient would reject right implementations. One whose cases lack a size, or whose values do not
come from the seed, would fail in the middle of a run, or differently each time. Such a contract is refused in one
sentence before any backend is judged. `tests/spec` checks more of the shipped contracts; these checks suit any.
"""

from __future__ import annotations

import torch
from torch import Tensor

from harness.errors import Broken
from harness.judging.by_identity import ByIdentity
from harness.judging.one_thread import one_thread
from harness.judging.scenarios import tagged
from spec import backward
from spec.contract import Case, Draw, Family, Operator, evaluate

#: The relative distance, in norm, that two float64 formulae of one gradient may have. A wrong one is far beyond it.
RELATIVE = 1e-6

#: A gradient whose norm is less than this counts as 0.
SMALLEST = 1e-8

_admitted: set[ByIdentity] = set()


def admit(operator: Operator) -> None:
    """Raise Broken, with the reason, if the contract cannot be used. Each operator is checked once."""
    if ByIdentity(operator) in _admitted:
        return
    with one_thread():
        for form in operator.every_form():
            _check_sizes(form)
            small = tagged(form, "small")[0]
            for family in (form.family("normal"), *form.families):
                _check_family(form, small, family)
            _check_gradient(form, small)
    _admitted.add(ByIdentity(operator))


def trust(operator: Operator) -> None:
    """Take a contract of this repository for admitted: its tests admit it."""
    _admitted.add(ByIdentity(operator))


def _refuse(form: Operator, what: str) -> Broken:
    return Broken(f"the contract of {form.title} is refused: {what}")


def _check_sizes(form: Operator) -> None:
    if not form.inputs or not form.outputs:
        raise _refuse(form, "it should name at least one input and one output")
    for tag in ("small", "size"):
        if not any(tag in case.tags for case in form.cases):
            raise _refuse(form, f"no case has the tag {tag!r}, but properties are judged on such cases: tag one")
    for case in form.cases:
        for arg in (*form.inputs, *form.outputs):
            for expression in (*arg.shape, arg.scale):
                try:
                    evaluate(expression, case.sizes)
                except KeyError as error:
                    symbol = error.args[0]
                    raise _refuse(
                        form,
                        f"case {case.name!r} has the sizes {', '.join(case.sizes)}, but {arg.name} of shape "
                        f"{arg.rule()} needs {symbol!r} too",
                    ) from None
                except (ValueError, SyntaxError) as error:
                    raise _refuse(form, f"shape of {arg.name}: {error}") from None


def _check_family(form: Operator, case: Case, family: Family) -> None:
    """The same Draw must give the same values, whatever torch's own generator did in between."""

    def values() -> dict[str, Tensor]:
        return family.make(case.sizes, Draw(0), torch.float32)

    where = f"value family {family.name!r}"
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        first = values()
        torch.manual_seed(2)
        second = values()
    for arg in form.inputs:
        if arg.name not in first:
            raise _refuse(form, f"{where} gives no values for {arg.name}")
        got, shape = first[arg.name], arg.shape_for(case.sizes)
        should = torch.float64 if arg.is_floating else torch.int64
        if got.dtype != should or tuple(got.shape) != shape:
            raise _refuse(
                form,
                f"{where} gives {arg.name} as {got.dtype} of shape {tuple(got.shape)}, but should give {should} "
                f"of shape {arg.rule()} = {shape}",
            )
        if not torch.equal(got.nan_to_num(), second[arg.name].nan_to_num()):
            raise _refuse(
                form,
                f"{where} gives {arg.name} other values each time from one seed, but should take them all from the "
                "Draw that it is given",
            )


def _check_gradient(form: Operator, case: Case) -> None:
    """`forward` and `vjp` must return what the contract names, and must agree with each other."""
    draw = Draw(0)
    made = form.ordinary(case.sizes, draw)
    inputs = tuple(arg.cast(made[arg.name], torch.float64).requires_grad_(arg.differentiable) for arg in form.inputs)
    outputs = form.forward(*inputs)
    if not isinstance(outputs, tuple) or len(outputs) != len(form.outputs):
        raise _refuse(form, f"forward should return a tuple of {len(form.outputs)} tensors: {form.signature}")
    for arg, output in zip(form.outputs, outputs, strict=True):
        if tuple(output.shape) != arg.shape_for(case.sizes):
            raise _refuse(
                form,
                f"forward returns {arg.name} of shape {tuple(output.shape)} for case {case.name!r}, but should return "
                f"{arg.rule()} = {arg.shape_for(case.sizes)}",
            )
        if not arg.is_floating and output.dtype != arg.dtype:
            raise _refuse(form, f"forward returns {arg.name} in {output.dtype}, but should return it in {arg.dtype}")
    wanted = [tensor for tensor in inputs if tensor.requires_grad]
    if not wanted:
        return
    real = [output for arg, output in zip(form.outputs, outputs, strict=True) if arg.is_floating]
    cotangents = tuple(draw.normal(tuple(output.shape)) for output in real)
    pairs = zip(wanted, backward.gradients(real, wanted, cotangents), strict=True)
    by_autograd = iter([torch.zeros_like(tensor) if g is None else g for tensor, g in pairs])
    with torch.no_grad():
        gradients = form.vjp(tuple(t.detach() for t in inputs), cotangents)
    if len(gradients) != len(inputs):
        raise _refuse(form, f"vjp returns {len(gradients)} gradients, but should return one for each of {len(inputs)}")
    for arg, gradient in zip(form.inputs, gradients, strict=True):
        if not arg.differentiable:
            continue
        expected = next(by_autograd)
        if gradient.shape != expected.shape:
            raise _refuse(
                form,
                f"vjp returns the gradient of {arg.name} of shape {tuple(gradient.shape)}, but should return "
                f"{tuple(expected.shape)}",
            )
        off = float((gradient - expected).norm()) / max(float(expected.norm()), SMALLEST)
        if not off <= RELATIVE:
            raise _refuse(
                form,
                f"the gradient of {arg.name} by vjp is off by {off:.2g} of the norm of autograd's through forward: one "
                "of the two is wrong",
            )
