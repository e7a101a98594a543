"""An operator as a key of a cache."""

from __future__ import annotations

from spec.contract import Operator


class ByIdentity:
    """An operator as a cache key: contracts hold lists and functions, which do not hash by value."""

    def __init__(self, operator: Operator) -> None:
        self.operator = operator

    def __hash__(self) -> int:
        return id(self.operator)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ByIdentity) and other.operator is self.operator
