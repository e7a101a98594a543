"""What the model of rounding asks about an operation of PyTorch. Found once for each: to ask takes longer than a small
operation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch

from spec.decomposing import functional, steps
from spec.operations import MOVES, OF_TWO, OVER_ALL, PRODUCTS, SCATTERS, SUMS


@dataclass(frozen=True, slots=True)
class Kind:
    """The kind of an operation."""

    #: Whether it changes the shape of its argument, and no element.
    changes_shape: bool
    #: Whether it writes to an argument, and the operation that returns what it writes, if there is one.
    writes: bool
    instead: Any
    #: Whether it does not round.
    moves: bool
    #: The function that evaluates it step by step; None for a step itself.
    made_of: Callable[..., Any] | None
    #: Whether a result may share memory with an argument.
    returns_a_part: bool
    #: Whether each element of its result depends on one element of each argument, and is rounded once.
    of_each: bool


@cache
def kind(func: Any) -> Kind:
    """The kind of an operation."""
    moves, made_of = func in MOVES, None if func in MOVES else steps(func)
    # Batch norm writes its running statistics, which are none of its results.
    instead = functional(func)
    writes = bool(func._schema.is_mutable) and (made_of is None or instead is not None)
    return Kind(
        changes_shape=torch.Tag.inplace_view in func.tags,
        writes=writes,
        instead=instead if writes else None,
        moves=moves,
        made_of=made_of,
        returns_a_part=any(value.alias_info is not None for value in func._schema.returns),
        of_each=not any(func in those for those in (SCATTERS, OF_TWO, OVER_ALL, PRODUCTS, SUMS)),
    )
