"""A property: a name, a claim, and the check that decides whether the claim holds."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from harness.errors import NotApplicable
from harness.judging.scenario import Scenario
from harness.judging.subject import Subject
from harness.report.levels import PRODUCTION
from spec.contract import Operator

#: Tables that show some of the properties: `python -m harness show --view NAME`.
GRADCHECK, PARITY, INTEGRATION = VIEWS = ("gradcheck", "parity", "integration")


def hold_gradient(operator: Operator) -> None:
    """Raise NotApplicable for an operator that has no gradient."""
    if not operator.has_gradient:
        raise NotApplicable(f"no gradient is asked of {operator.title}: its contract has none")


@dataclass(frozen=True)
class Property:
    """Something that every implementation must hold.

    `check(subject)` returns figures for the report. It raises Failure if the property does not hold, NoEvidence if it
    could not tell, and NotApplicable if the property does not apply to this operator, or not on this machine.

    `dtypes` and `devices` are where the question is asked; empty means everywhere. `why_only` explains them; elsewhere
    there is no cell. A `large` property takes most of a GPU's memory: one worker checks those first, while the others
    still hold little. `view` names the table that shows it, besides the table of all properties. `level` is one of
    `harness.report.levels.LEVELS`.

    An `outside` property needs only what calls return. So for a function of another process it is checked in the
    judge's process; any other property is checked in a process of the function, which could forge the answer. A `once`
    property is judged in the first selected dtype only. The check of a `divisible` property makes its calls by
    `Subject.shared`, so that shards may share them out. A `sanitized` property is asked of candidates with
    `--sanitize`, and judged in a process that builds what it compiles with AddressSanitizer and UBSan.

    `foreseen(subject)` are scenarios whose expected results the check asks for, as far as they are known before any
    call: they may be computed meanwhile (`harness.running.foreseeing`). What it leaves out is computed by the check.
    """

    name: str
    claim: str
    check: Callable[[Subject], dict[str, Any]]
    large: bool = False
    view: str = ""
    level: str = PRODUCTION
    outside: bool = False
    once: bool = False
    divisible: bool = False
    sanitized: bool = False
    dtypes: tuple[str, ...] = ()
    devices: tuple[str, ...] = ()
    why_only: str = ""
    foreseen: Callable[[Subject], Iterable[Scenario]] | None = None

    def __post_init__(self) -> None:
        if bool(self.dtypes or self.devices) is not bool(self.why_only):
            raise ValueError(f"{self.name}: why_only was {self.why_only!r}, but should explain its dtypes and devices")

    def is_asked(self, device: str, dtype: str, sanitize: bool = False) -> bool:
        """Whether there is a cell on that device in that dtype; `sanitize`: of a candidate with `--sanitize`."""
        if self.sanitized and not sanitize:
            return False
        return (not self.devices or device in self.devices) and (not self.dtypes or dtype in self.dtypes)

    def only(self) -> str:
        """`on cuda in float32: ` and why, where it is asked; "" if everywhere."""
        places = [f"on {' and '.join(self.devices)}"] if self.devices else []
        places += [f"in {' and '.join(self.dtypes)}"] if self.dtypes else []
        return f"{' '.join(places)}: {self.why_only}" if places else ""
