"""Install and judge the releases of an entry, and compare with what the entry says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.errors import NoEvidence, Unavailable
from harness.report.report import Report
from museum import judging, verdicts
from museum.entries import Entry
from museum.installing import folder_of, present
from museum.verdicts import Finding

#: Where the reports of the single releases are written.
REPORTS = Path("reports/museum")
#: What a verdict depends on, of the environment that a report records.
FACTS = ("python", "torch", "cpu", "gpu", "commit", "dirty")

Judge = Callable[[Entry, list[Path], Path], Report]
Finder = Callable[[str], Path]


@dataclass
class Visit:
    """What was found of the two releases of an entry."""

    entry: Entry
    broken: Finding
    fixed: Finding
    environment: dict[str, Any] = field(default_factory=dict)

    @property
    def holds(self) -> bool:
        """Whether both releases behave as the entry says."""
        return verdicts.holds(self.entry, self.broken, self.fixed)

    @property
    def sentence(self) -> str:
        """The result in one sentence."""
        return verdicts.sentence(self.entry, self.broken, self.fixed)

    def record(self) -> dict[str, Any]:
        """The row of reports/museum.json."""
        entry = self.entry
        return {
            "name": entry.name,
            "package": entry.package,
            "issue": entry.issue,
            "defect": entry.defect,
            "judged by": entry.operator or entry.reference,
            "properties": list(entry.judged_by),
            "device": entry.device,
            "dtype": entry.dtype,
            "expected": entry.expected,
            "why": entry.why,
            "broken": {"version": entry.broken, "outcome": self.broken.outcome, "detail": self.broken.detail},
            "fixed": {"version": entry.fixed, "outcome": self.fixed.outcome, "detail": self.fixed.detail},
            "holds": self.holds,
            "environment": self.environment,
        }


def visit(entry: Entry, judge: Judge = judging.judged, find: Finder = folder_of, reports: Path = REPORTS) -> Visit:
    """Judge the release with the defect, and the repaired one if there is one. Nothing is raised for a release."""
    found: dict[str, Finding] = {}
    environment: dict[str, Any] = {}
    for part, version, verdict in (
        ("broken", entry.broken, verdicts.of_broken),
        ("fixed", entry.fixed, verdicts.of_fixed),
    ):
        if not version:
            found[part] = Finding(verdicts.NOT_ASKED)
            continue
        try:
            folders = [find(asked) for asked in entry.requirements(version) if not present(asked)]
            report = judge(entry, folders, reports / f"{entry.name}-{part}.json")
        except Unavailable as error:
            found[part] = Finding(verdicts.NOT_INSTALLED, str(error))
        except NoEvidence as error:
            found[part] = Finding(verdicts.NOT_JUDGED, str(error))
        else:
            # Where torch itself is the package, the release with the defect is that of the environment.
            environment = environment or {name: report.environment.get(name) for name in FACTS}
            found[part] = verdict(entry, report.cells)
    return Visit(entry, found["broken"], found["fixed"], environment)
