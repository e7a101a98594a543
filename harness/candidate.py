"""A candidate as it is given on the command line. Nothing of it is imported here, and neither is torch."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from harness.errors import UnknownName, UsageError


@dataclass(frozen=True)
class Candidate:
    """A function given on the command line. It is not imported: see `load_candidate`.

    `where` is the complete path of a file, or the name of a module. `text` is the option's value with that path, so
    that it means the same in any folder.
    """

    operator: str
    where: str
    attribute: str

    @property
    def name(self) -> str:
        """The name of the function."""
        return self.attribute

    @property
    def text(self) -> str:
        """`lltm=/complete/path/FILE.py:FUNCTION`."""
        return f"{self.operator}={self.where}:{self.attribute}"

    def check(self, is_callable: bool, kind: str, names: Iterable[str], declared: object, shown: str) -> dict[str, str]:
        """Check what the import has found; returns what the module declares that it does not do.

        `names` are those of the module, `declared` its DECLARED, as `shown`. Raises UnknownName and UsageError.
        """
        names = list(names)
        if self.attribute not in names and not is_callable:
            raise UnknownName(f"function in {self.where}", self.attribute, names)
        if not is_callable:
            raise UsageError(f"--candidate {self.text}: {self.attribute} is {kind}, but should be a function")
        return check_declared(self.where, declared, shown)


def check_declared(where: str, declared: object, shown: str) -> dict[str, str]:
    """DECLARED of a module, if it is a dict of property name to reason. Raises UsageError, with the text `shown`."""
    if not isinstance(declared, dict) or not all(isinstance(x, str) and x for pair in declared.items() for x in pair):
        raise UsageError(f"{where}: DECLARED was {shown}, but should be a dict of property name to reason")
    return declared


def forward_name(operator: str) -> str:
    """The name of the contract of that operator without its gradient: results of the two are not to be mixed up."""
    return f"{operator}_forward"


def by_forward(text: str) -> str:
    """`lltm=FILE.py:FUNCTION` judged by the contract without the gradient."""
    operator, _, place = text.partition("=")
    return f"{forward_name(operator)}={place}"


def candidate(text: str) -> Candidate:
    """Read `lltm=FILE.py:FUNCTION` or `lltm=package.module:FUNCTION`. Raises UsageError; nothing is imported."""
    operator_name, equals, place = text.partition("=")
    where, colon, attribute = place.rpartition(":")
    if not (operator_name and equals and where and colon and attribute):
        raise UsageError(
            f"--candidate was {text!r}, but should be OPERATOR=FILE.py:FUNCTION or OPERATOR=package.module:FUNCTION"
        )
    if where.endswith(".py"):
        path = Path(where).resolve()
        if not path.is_file():
            raise UsageError(f"--candidate {text}: {path} does not exist")
        where = str(path)
    return Candidate(operator_name, where, attribute)
