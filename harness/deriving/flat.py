"""Inputs of which the gradient of a reference is 0 everywhere, or 0 but for rounding.

Such is what it rounds, the scale of a straight-through estimator, or a bias in front of a normalisation that subtracts
it again. Zeros, noise and no gradient at all are right, and no call tells a right gradient from a missing one. So none
is asked.
"""

from __future__ import annotations

import torch
from torch import Tensor

from harness.judging.scenario import Scenario, realise
from spec.contract import Draw, Operator, Sizes

#: Calls with ordinary values. In each family of values there is one more.
_CALLS = 4
#: Its values may have no gradient at all.
_NOT_ASKED = "non-finite"
#: By how much inputs and cotangents are moved, relative to themselves, and what part of a gradient changes then if it
#: is noise, less than 2^-42 of the terms that it is a sum of. Noise is a few units of the last place, and the same
#: again by chance; so it is tried some times.
_STEP, _PART, _TRIES = 2.0**-44, 0.25, 6


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
        doubtful = {name: place for name, place in left.items() if bool(gradients[place].any())}
        draw = Draw(scenario.seed)
        for _ in range(_TRIES if doubtful else 0):
            others = tuple(g * (1 + _STEP * draw.uniform(tuple(g.shape), 0.5, 1.5)) for g in cotangents)
            moved = operator.evaluated(operator.moved(call.inputs, _STEP, draw), others)[1]
            doubtful = {
                name: place for name, place in doubtful.items() if not _is_noise(gradients[place], moved[place])
            }
        left = {name: place for name, place in left.items() if name not in doubtful}
    return tuple(left)


def _is_noise(gradient: Tensor, moved: Tensor) -> bool:
    """Whether a gradient changes with inputs that hardly do."""
    return not float((gradient - moved).norm()) < _PART * float(gradient.norm())
