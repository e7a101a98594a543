"""A failure as a short script that shows it again, alone."""

from __future__ import annotations

from dataclasses import fields

from harness.scenario import Scenario
from harness.subject import Subject


def script(subject: Subject, scenario: Scenario, reason: str) -> str:
    """A Python script that calls the subject with the scenario and prints what is wrong; run it where `harness` is."""
    defaults = Scenario(sizes=())
    given = [field.name for field in fields(Scenario) if getattr(scenario, field.name) != getattr(defaults, field.name)]
    arguments = ", ".join(f"{name}={getattr(scenario, name)!r}" for name in given)
    who = "candidate" if subject.source else "backend"
    headline = reason.splitlines()[0].replace("\\", "\\\\").replace('"', "'")
    return "\n".join(
        [
            f'"""{headline}"""',
            "from harness.replay import replay",
            "from harness.scenario import Scenario",
            "",
            f"scenario = Scenario({arguments})",
            "replay(",
            f"    operator={subject.operator.name!r},",
            *([f"    form={subject.operator.form!r},"] if subject.operator.form else []),
            f"    {who}={subject.source or subject.backend!r},",
            f"    device={subject.device!r},",
            f"    dtype={subject.dtype_name!r},",
            "    scenario=scenario,",
            ")",
            "",
        ]
    )
