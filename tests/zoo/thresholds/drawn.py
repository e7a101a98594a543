"""What is drawn: a fault, the text of its file, its honest twin, and a call that shows the difference."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import torch

#: What a witness looks at after its calls.
RESULTS, ALIASING, STALE, CALLS, STATE = SEES = ("results", "aliasing", "stale", "calls", "state")
#: Modes of a call.
GRAD, NO_GRAD, INFERENCE = MODES = ("grad", "no_grad", "inference_mode")


@dataclass(frozen=True)
class Expanded:
    """A cotangent that is repeated with stride 0 along `dims`, times `factor`. Without `dims` it is dense."""

    dims: tuple[int, ...] = ()
    factor: float = 1.0


@dataclass(frozen=True)
class Witness:
    """A call at which the fault is wrong, in a form of the operator, the first one if it is empty; and what to look at.

    `values` are changes of ordinary values, in order: tensor, a change of `observing._changed`, and a number.
    `changed` are the tensors that get new values before a second call (`stale`). `repeats` is the number of equal calls
    (`calls`). All inputs require grad if `wanted` is None.
    """

    sizes: Mapping[str, int]
    layouts: Mapping[str, str] = field(default_factory=dict)
    values: tuple[tuple[str, str, float], ...] = ()
    cotangents: Mapping[str, Expanded] = field(default_factory=dict)
    wanted: tuple[str, ...] | None = None
    mode: str = GRAD
    sees: str = RESULTS
    changed: tuple[str, ...] = ()
    repeats: int = 1
    form: str = ""


@dataclass(frozen=True)
class Drawn:
    """One fault. `words` say what is wrong, with the literals. `honest` is the same text without the mistake."""

    operator: str
    kind: str
    variant: str
    words: str
    source: str
    honest: str
    witness: Witness
    dtype: torch.dtype = torch.float32
