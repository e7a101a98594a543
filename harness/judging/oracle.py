"""What a call should return, and how far rounding may take an implementation from it.

An `Expected` is computed from the scenario alone, on the CPU. All backends share it. It never sees a candidate, or a
tensor that a candidate has touched.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache

import torch
from torch import Tensor

from harness.errors import HarnessError, NotTaken
from harness.judging import compiled_noise, stored
from harness.judging.by_identity import ByIdentity
from harness.judging.compare import has_evidence
from harness.judging.scenario import CHANGING, Call, Scenario, realise
from spec import discrete, steps
from spec.contract import Operator, Sizes, TensorArg
from spec.envelope import Block, Envelope, envelopes, widened_noise
from spec.odd_rows import of_infinite_rows, of_masked_elements, of_unordered_rows
from spec.precise import precisely


@dataclass(frozen=True)
class Expected:
    """Exact outputs and gradients (float64), each with its envelope, by the names of outputs and inputs."""

    outputs: dict[str, Envelope]
    gradients: dict[str, Envelope]
    #: Names for which a wrong answer would have been rejected; "gradient of ..." for gradients.
    evident: frozenset[str]
    #: Whether the exact values have more digits than float64: see `spec.precise`.
    precise: bool = False


def expected(operator: Operator, scenario: Scenario, dtype: torch.dtype) -> Expected:
    """The expected results of one scenario, with gradients of every differentiable input."""
    return _expected(ByIdentity(operator), values_of(scenario), dtype)


def values_of(scenario: Scenario) -> Scenario:
    """What of a scenario decides the values. Which gradients are wanted, and most layouts, do not change them."""
    return replace(
        scenario,
        name="",
        wanted=None,
        layouts=tuple(pair for pair in scenario.layouts if pair[1] in CHANGING),
        cotangents=tuple(pair for pair in scenario.cotangents if pair[1] in CHANGING),
    )


def prepare(operator: Operator, values: Scenario, dtype: torch.dtype) -> bool:
    """Have the store keep the expected results of a scenario of `values_of`; False if it had them already."""
    call = realise(operator, values, dtype)
    if stored.has("expected", operator, dtype, given(operator, call)):
        return False
    expected_of(operator, call, dtype)
    return True


@lru_cache(maxsize=2048)
def _expected(key: ByIdentity, scenario: Scenario, dtype: torch.dtype) -> Expected:
    return expected_of(key.operator, realise(key.operator, scenario, dtype), dtype)


def forget() -> None:
    """Drop the expected results that are kept: in a run of hours they would fill the memory."""
    _expected.cache_clear()


def expected_of(operator: Operator, call: Call, dtype: torch.dtype) -> Expected:
    """The expected results of a call that no scenario describes."""
    asked = given(operator, call)
    with said_by_the_reference(operator, call):
        found = stored.results("expected", operator, dtype, asked, lambda: _computed(operator, call, dtype))
    outputs = {arg.name: found.envelopes[arg.name] for arg in operator.outputs if arg.name in found.envelopes}
    gradients = {arg.name: found.envelopes[f"gradient of {arg.name}"] for arg in operator.inputs if arg.differentiable}
    return Expected(outputs, gradients, frozenset(found.facts["evident"]), precise=found.facts["precise"])


def given(operator: Operator, call: Call) -> dict[str, Tensor | None]:
    """The tensors of a call by the names of what they are."""
    names = [*(arg.name for arg in operator.inputs), *(f"cotangent of {arg.name}" for arg in operator.outputs)]
    return dict(zip(names, (*call.inputs, *call.cotangents), strict=False))


@contextmanager
def said_by_the_reference(operator: Operator, call: Call) -> Iterator[None]:
    """Raises NotTaken where the reference of a derived contract raises: it cannot say what should come out."""
    try:
        yield
    except HarnessError:
        raise
    except Exception as error:
        if not operator.by_reference:
            raise
        sizes = ", ".join(f"{expression}={size}" for expression, size in _sizes(operator, call).items())
        said = " ".join(str(error).split()) or "no reason"
        raise NotTaken(
            f"the reference raised {type(error).__name__}: {said} for {sizes}, so that no implementation can be asked: "
            "make the reference take such a call"
        ) from error


def _computed(operator: Operator, call: Call, dtype: torch.dtype) -> stored.Results:
    compiled_noise.use(stored.is_used())
    exact_call = call.to_float64()
    eager = _eager(operator, call, exact_call)
    sizes = _sizes(operator, call)
    blocks = [_blocks(arg, sizes) for arg in (*operator.outputs, *operator.inputs)]

    complete = with_zeros(operator, exact_call)

    def reference(*given: Tensor) -> tuple[Tensor, ...]:
        return evaluate(operator, complete.of(iter(given)))

    honest = [evaluate(replace(operator, both=operator.narrow), complete)] if _has_narrow(operator, dtype) else []
    precise = precisely(lambda: reference(*complete.tensors)) if dtype == torch.float64 else None
    found = envelopes(
        reference,
        eager,
        dtype,
        blocks=blocks,
        exact=precise.exact if precise else None,
        honest=[precise.losing_less] if precise else honest,
        inputs=complete.tensors,
        dtypes=[*(arg.dtype_in(dtype) for arg in operator.outputs), *(dtype for _ in operator.inputs)],
    )
    if operator.has_steps and operator.real_outputs:
        found = steps.decided(reference, complete.tensors, dtype, found)
    count = len(operator.outputs)
    outputs = discrete.decided(operator.forward, complete.inputs, dtype, found[:count])
    outputs = of_infinite_rows(operator, complete.inputs, outputs)
    outputs = of_masked_elements(operator, complete.inputs, outputs)
    outputs = of_unordered_rows(operator, complete.inputs, outputs)
    found = tuple(discrete.of_finite_rows(operator, complete.inputs, [*outputs, *found[count:]]))
    named = dict(zip((arg.name for arg in operator.outputs), found, strict=False))
    if operator.by_reference:
        found = (*found[:count], *map(widened_noise, found[count:]))
    gradients = zip(operator.inputs, found[len(named) :], strict=True)
    named |= {f"gradient of {arg.name}": envelope for arg, envelope in gradients if arg.differentiable}
    evident = sorted(name for name, envelope in named.items() if has_evidence(envelope))
    return stored.Results(named, facts={"evident": evident, "precise": precise is not None})


def _has_narrow(operator: Operator, dtype: torch.dtype) -> bool:
    return operator.narrow is not None and dtype != torch.float64


def _eager(operator: Operator, call: Call, exact_call: Call) -> tuple[Tensor, ...]:
    """The reference in the dtype itself, with NaN where the contract leaves a gradient open: not compared."""
    eager = _finite_by_steps(operator, with_zeros(operator, call))
    if operator.unspecified is None:
        return eager
    inputs, cotangents = exact_call.inputs, with_zeros(operator, exact_call).cotangents
    with torch.no_grad():
        marked = operator.unspecified(inputs, tuple(g for g in cotangents if g is not None))
    outputs, gradients = eager[: len(operator.outputs)], eager[len(operator.outputs) :]
    each = zip(operator.inputs, gradients, marked, strict=True)
    return *outputs, *(
        g.masked_fill(mark.isnan().to(g.device), math.nan) if arg.differentiable else g for arg, g, mark in each
    )


def _finite_by_steps(operator: Operator, call: Call) -> tuple[Tensor, ...]:
    """The reference in the dtype of the call, with NaN where it is not finite if some operations are made of others."""
    eager = evaluate(operator, call)
    if operator.by_steps is None:
        return eager
    found = operator.by_steps(call.inputs, tuple(g for g in call.cotangents if g is not None))
    if found is None:
        return eager
    steps = (*found[0], *found[1])
    pairs = zip(eager, steps, strict=True)
    return tuple(
        y.masked_fill(~z.isfinite(), math.nan) if y.shape == z.shape and y.is_floating_point() else y for y, z in pairs
    )


def _sizes(operator: Operator, call: Call) -> Sizes:
    pairs = zip(operator.inputs, call.inputs, strict=True)
    return {symbol: n for arg, tensor in pairs for symbol, n in zip(arg.shape, tensor.shape, strict=True)}


def _blocks(arg: TensorArg, sizes: Sizes) -> list[Block]:
    return [
        Block(name, dim, begin, end - begin)
        for dim in range(len(arg.shape))
        for name, begin, end in arg.blocks_of(dim, sizes)
    ]


def with_zeros(operator: Operator, call: Call) -> Call:
    """The call with a cotangent of zeros for each output of real numbers that the loss does not use."""
    pairs = list(zip(operator.outputs, call.cotangents, strict=True))
    if all(g is not None for arg, g in pairs if arg.is_floating):
        return call
    like = operator.forward(*call.inputs)
    return Call(
        call.inputs,
        tuple(
            torch.zeros_like(y) if g is None and arg.is_floating else g for (arg, g), y in zip(pairs, like, strict=True)
        ),
    )


def evaluate(operator: Operator, call: Call) -> tuple[Tensor, ...]:
    """(outputs..., gradients...) by the contract's own `forward` and `vjp`, in the dtype of the call."""
    cotangents = tuple(g for g in call.cotangents if g is not None)
    with torch.no_grad():
        if not operator.has_gradient:
            return (*operator.forward(*call.inputs), *(torch.empty(0, dtype=torch.float64) for _ in call.inputs))
        outputs, found = operator.evaluated(call.inputs, cotangents)
        gradients = zip(operator.inputs, found, strict=True)
        return (*outputs, *(g if arg.differentiable else cotangents[0].new_empty(0) for arg, g in gradients))
