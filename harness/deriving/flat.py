"""Inputs on which a reference depends in steps alone: its gradient of them is 0 everywhere.

Such is what it rounds, or the scale of a straight-through estimator. Zeros and no gradient at all are both right, and
no call tells a right gradient from a missing one. So none is asked.
"""

from __future__ import annotations

from dataclasses import replace

import torch

from harness.judging.scenario import Scenario, realise
from spec.contract import Operator, Sizes, TensorArg

#: Calls with ordinary values. In each family of values there is one more.
_CALLS = 4
#: Its values may have no gradient at all.
_NOT_ASKED = "non-finite"


def flat(operator: Operator, sizes: Sizes) -> tuple[str, ...]:
    """The names of the inputs whose gradient is 0 in calls of these sizes with all values of the contract."""
    left = {arg.name: place for place, arg in enumerate(operator.inputs) if arg.differentiable}
    scenarios = [Scenario(tuple(sizes.items()), seed=seed) for seed in range(_CALLS)]
    scenarios += [
        Scenario(tuple(sizes.items()), values=family.name) for family in operator.families if family.name != _NOT_ASKED
    ]
    for scenario in scenarios if operator.real_outputs else ():
        if not left:
            break
        call = realise(operator, scenario, torch.float64)
        cotangents = tuple(g for g in call.cotangents if g is not None)
        gradients = operator.evaluated(call.inputs, cotangents)[1]
        left = {name: place for name, place in left.items() if not bool(gradients[place].any())}
    return tuple(left)


def without(inputs: tuple[TensorArg, ...], names: tuple[str, ...]) -> tuple[TensorArg, ...]:
    """The inputs, of which these have no gradient."""
    return tuple(replace(arg, differentiable=arg.differentiable and arg.name not in names) for arg in inputs)
