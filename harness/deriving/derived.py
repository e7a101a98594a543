"""A contract, and what was found out while it was derived."""

from __future__ import annotations

from dataclasses import dataclass

from spec.contract import Operator
from spec.derived import Reference


@dataclass(frozen=True)
class Derived:
    """A derived contract: where its reference is, and what was found.

    `found` are sentences about the reference that hold; `left_out` says what is not judged, and why.
    """

    where: str
    function: str
    operator: Operator
    reference: Reference
    families: tuple[str, ...]
    found: tuple[str, ...]
    left_out: tuple[str, ...]
