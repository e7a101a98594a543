"""Operators that the implementation registers with PyTorch obey PyTorch's rules: torch.library.opcheck passes for each.

The check records every operator that is called through `torch.ops`, by the function itself or inside of it, forward and
backward, and passes it to opcheck with the recorded arguments. opcheck tests that the schema names every mutation and
alias, that autograd is registered for the right keys, that the fake kernel returns what the real one does, and that AOT
autograd traces it with static and dynamic sizes. An operator that was called with inputs that require grad is checked
with such inputs; without them opcheck does not test its derivative. Operators of a backward are recorded again with a
single input that requires grad, and with transposed cotangents. opcheck compares a traced gradient with the eager one,
so two equal wrong ones pass; therefore outputs and gradients are also compared with the oracle.

An implementation that calls no operator of its own, plain torch or an autograd.Function, has nothing registered.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map_only

from harness.errors import Failure, NotApplicable
from harness.judging.property import INTEGRATION, Property
from harness.judging.scenario import Scenario
from harness.judging.scenarios import smallest
from harness.judging.subject import Subject
from harness.judging.tally import Tally
from harness.report.levels import PYTORCH

CHECKS = (
    "test_schema",
    "test_autograd_registration",
    "test_faketensor",
    "test_aot_dispatch_static",
    "test_aot_dispatch_dynamic",
)
#: Namespaces of PyTorch itself.
_OF_TORCH = ("aten", "prim", "prims", "c10d", "_c10d_functional", "inductor", "profiler", "higher_order")


def check(subject: Subject) -> dict[str, Any]:
    """opcheck for every operator that one forward and backward calls; then the values and gradients."""
    scenario = smallest(subject.operator)
    where = f"[{scenario.describe(subject.operator)}]"
    tally = Tally(subject)
    with warnings.catch_warnings():  # opcheck itself reports what torch warns of here
        warnings.simplefilter("ignore")
        calls = _calls_of(subject, scenario)
        if not calls.noted:
            raise NotApplicable("it calls no operator of its own: nothing is registered with torch.library")
        others = {words: _calls_of(subject, other) for words, other in _others(subject, scenario).items()}
        tally.run(scenario)
    found: dict[str, Any] = {}
    for operator, noted in calls.noted.items():
        _opcheck(operator, noted, where)
        found[str(operator)] = "with inputs that require grad" if noted.tracked else "without grad"
    for words, of_other in others.items():
        for operator, noted in of_other.noted.items():
            if not noted.tracked:
                _opcheck(operator, noted, f"{words} {where}")
    return {**tally.figures(), "operators": found, "checks": CHECKS}


def _others(subject: Subject, scenario: Scenario) -> dict[str, Scenario]:
    """Calls with another backward: its results depend on what is wanted, and their strides may depend on cotangents."""
    if not subject.operator.has_gradient:
        return {}
    first = next(arg.name for arg in subject.operator.inputs if arg.differentiable)
    transposed = tuple((arg.name, "transposed") for arg in subject.operator.real_outputs)
    return {
        f"where {first} alone requires grad": replace(scenario, wanted=(first,)),
        "with transposed cotangents": replace(scenario, cotangents=transposed),
    }


def _calls_of(subject: Subject, scenario: Scenario) -> _Calls:
    """The operators that one forward and backward calls."""
    with _Calls() as calls:
        call = subject.realise(scenario)
        subject.gradients(call, subject.outputs(call, scenario), scenario)
    return calls


@dataclass(frozen=True)
class _Noted:
    """The arguments of one call, copied; `tracked`: some of them require grad."""

    args: Sequence[Any]
    kwargs: Mapping[str, Any]
    tracked: bool

    @classmethod
    def of(cls, args: Sequence[Any], kwargs: Mapping[str, Any], above_autograd: bool) -> _Noted:
        leaves = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)]
        tracked = above_autograd and any(leaf.requires_grad for leaf in leaves)

        def copy(tensor: Tensor) -> Tensor:
            return tensor.detach().clone().requires_grad_(above_autograd and tensor.requires_grad)

        with torch.enable_grad():  # a backward runs without grad, and so would the copies
            args, kwargs = tree_map_only(Tensor, copy, (tuple(args), dict(kwargs)))
        return cls(args, kwargs, tracked)


class _Calls:
    """While it is entered, it records the first call of each operator that is not PyTorch's.

    A function mode sees a call above autograd, where inputs may require grad. A dispatch mode sees what an operator in
    C++ calls, below autograd. Of two calls, the one with inputs that require grad tests more.
    """

    def __init__(self) -> None:
        self.noted: dict[torch._ops.OpOverload[..., Any], _Noted] = {}
        self._modes = (_Above(self._note), _Below(self._note))

    def __enter__(self) -> _Calls:
        for mode in self._modes:
            mode.__enter__()  # type: ignore[no-untyped-call]
        return self

    def __exit__(self, *error: Any) -> None:
        for mode in reversed(self._modes):
            mode.__exit__(*error)  # type: ignore[no-untyped-call]

    def _note(self, called: Any, args: Sequence[Any], kwargs: Mapping[str, Any], above_autograd: bool) -> None:
        if isinstance(called, torch._ops.OpOverloadPacket):
            called = called.default if hasattr(called, "default") else None
        if not isinstance(called, torch._ops.OpOverload) or called.namespace in _OF_TORCH:
            return
        there = self.noted.get(called)
        if there is None or not there.tracked:
            now = _Noted.of(args, kwargs, above_autograd)
            if there is None or now.tracked:
                self.noted[called] = now


_Note = Callable[[Any, Sequence[Any], Mapping[str, Any], bool], None]


class _Above(TorchFunctionMode):
    def __init__(self, note: _Note) -> None:
        super().__init__()
        self._note = note

    def __torch_function__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        self._note(func, args, kwargs or {}, True)
        return func(*args, **(kwargs or {}))


class _Below(TorchDispatchMode):  # type: ignore[no-untyped-call]
    def __init__(self, note: _Note) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._note = note

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        self._note(func, args, kwargs or {}, False)
        return func(*args, **(kwargs or {}))


def _opcheck(operator: torch._ops.OpOverload[..., Any], noted: _Noted, where: str) -> None:
    """Raise Failure for the first of opcheck's tests that does not hold."""
    with warnings.catch_warnings():  # the candidate does not cause torch's warnings while it traces
        warnings.simplefilter("ignore")
        found = torch.library.opcheck(
            operator, tuple(noted.args), dict(noted.kwargs), test_utils=CHECKS, raise_exception=False
        )
    for name, outcome in found.items():
        if outcome != "SUCCESS":
            raise Failure(
                f"{name} of opcheck failed for {operator}, but should hold: {_outcome_in_words(outcome)} {where}"
            )


def _outcome_in_words(outcome: Any) -> str:
    """The cause of a failed test of opcheck, in one line."""
    error = getattr(outcome, "__cause__", None) or outcome
    return " ".join(str(error).split())[:400]


PROPERTY = Property(
    "opcheck",
    "operators registered with torch.library pass opcheck, and differentiate right",
    check,
    view=INTEGRATION,
    level=PYTORCH,
    dtypes=("float64",),
    why_only="what is registered is the same in every dtype",
)
