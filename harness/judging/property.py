"""A property: a name, a claim, and the check that decides whether the claim holds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from harness.judging.subject import Subject
from harness.report.levels import PRODUCTION

#: Tables that show some of the properties: `python -m harness show --view NAME`.
GRADCHECK, PARITY, INTEGRATION = VIEWS = ("gradcheck", "parity", "integration")


@dataclass(frozen=True)
class Property:
    """Something that every implementation must hold.

    `check(subject)` returns figures for the report. It raises Failure if the property does not hold, NoEvidence if it
    could not tell, and NotApplicable if the property does not apply to this subject. A `large` property takes most of a
    GPU's memory: one worker checks those first, while the others still hold little. `view` names the table that shows
    it, besides the table of all properties. `level` is one of `harness.report.levels.LEVELS`.

    An `outside` property needs only what calls return. So for a function of another process it is checked in the
    judge's process; any other property is checked in a process of the function, which could forge the answer. A `once`
    property is judged in the first selected dtype only.
    """

    name: str
    claim: str
    check: Callable[[Subject], dict[str, Any]]
    large: bool = False
    view: str = ""
    level: str = PRODUCTION
    outside: bool = False
    once: bool = False
