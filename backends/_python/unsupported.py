"""What an adapter says of a call that its package has no function for."""

from __future__ import annotations


def refused(operator: str, argument: str, was: object, should: str, package: str) -> NotImplementedError:
    """The error of a right call that the package does not support: `raise refused(...)`.

    `should` says which values of the argument the package takes.
    """
    return NotImplementedError(
        f"{operator}: {argument} was {was}, but should be {should}: {package} has no function for it; choose another "
        "backend"
    )
