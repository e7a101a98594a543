"""Which elements of a discrete result are decided: those that rounding cannot change.

An index, an 8-bit number or a truth value has no small error: it is right, or another one. So a discrete output must
equal that of the reference wherever every evaluation gives the same value in which each operation errs by up to `TIMES`
its roundoff, as the allowance of a real number is `TIMES` standard deviations. Operations that pick elements by their
values, such as `torch.topk`, also break ties: `spec.picks`. All other comparisons of the inputs themselves are exact,
so what `x > 0` is at 0 is decided.

Nothing is asked of an element that is not decided. Not even that its value is one of those that were seen: of a row of
a thousand zeros any index is right, and few of them are seen. A number of 8 bits is no index: where rounding changes it
by `MOST` or less, it may differ by as much as in any evaluation.

Nor of a row with inputs that are not finite. A NaN is the largest number for one kernel and is never found by another,
and what it is as an integer no standard says.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from spec.contract import Operator
from spec.envelope import CLIFF, Envelope, chosen, discrete_envelope, everywhere
from spec.odd_rows import Rows
from spec.runs import rounded_runs

#: How many times its roundoff each operation errs by, at most.
TIMES = CLIFF
#: Evaluations. Two elements whose distance is a quarter of what they may err by change places in a quarter of them.
EVALUATIONS = 64
#: The first seed: other errors than those of the envelopes.
_SEED = 1_000_000


def decided(
    forward: Callable[..., Sequence[Tensor]], inputs: Sequence[Tensor], dtype: torch.dtype, found: Sequence[Envelope]
) -> list[Envelope]:
    """The envelopes of the outputs of `forward`, with fewer elements of the discrete ones decided."""
    places = [place for place, envelope in enumerate(found) if envelope.discrete]

    def discrete(*given: Tensor) -> tuple[Tensor, ...]:
        outputs = forward(*given)
        return tuple(outputs[place] for place in places)

    runs = rounded_runs(discrete, inputs, dtype, _SEED, EVALUATIONS, TIMES) if places else []
    narrowed = list(found)
    for number, place in enumerate(places):
        before = found[place]
        now = discrete_envelope(before.exact, [run[number] for run in runs])
        moved = torch.maximum(everywhere(before), everywhere(now))
        narrowed[place] = _with(before, before.usable & now.usable, moved)
    return narrowed


def of_finite_rows(operator: Operator, inputs: Sequence[Tensor], found: Sequence[Envelope]) -> list[Envelope]:
    """The envelopes of outputs and gradients, in which less is decided of a row with inputs that are not finite.

    No discrete element is; and where the gradient of an operator with such outputs is not finite, it may be 0: an
    element that is not picked may have no part in it.
    """
    if all(arg.is_floating for arg in operator.outputs):
        return list(found)
    odd = Rows(operator.inputs, inputs, lambda tensor: ~tensor.isfinite())
    if not odd:
        return list(found)
    narrowed = []
    for place, envelope in enumerate(found):
        arg = (*operator.outputs, *operator.inputs)[place]
        is_gradient = place >= len(operator.outputs) and arg.differentiable
        if not envelope.discrete and not is_gradient:
            narrowed.append(envelope)
            continue
        where = odd.of(arg, envelope.exact)
        if envelope.discrete:
            narrowed.append(_with(envelope, envelope.usable & ~where, everywhere(envelope)))
        else:
            narrowed.append(replace(envelope, undecided=envelope.undecided | (where & ~envelope.usable)))
    return narrowed


def _with(envelope: Envelope, usable: Tensor, moved: Tensor) -> Envelope:
    """A discrete envelope of which fewer elements are usable, and by how much rounding moves each element."""
    return replace(envelope, usable=usable, undecided=~usable, sigma=chosen(moved, usable))
