"""What a property is: a name, a claim, and the check that decides."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from harness.judging.subject import Subject

#: Tables that show a part of the properties: `python -m harness show --view NAME`.
GRADCHECK, PARITY, INTEGRATION = VIEWS = ("gradcheck", "parity", "integration")


@dataclass(frozen=True)
class Property:
    """Something that every implementation must keep.

    `check(subject)` returns figures for the report. It raises Failure where the property does not hold, NoEvidence
    where it could not tell, NotApplicable where it says nothing about this subject. A property that is `large` takes
    most of a GPU's memory: one worker checks those first, while the others still hold little. `view` names the table
    that shows it beside the table of all properties.
    """

    name: str
    claim: str
    check: Callable[[Subject], dict[str, Any]]
    large: bool = False
    view: str = ""
