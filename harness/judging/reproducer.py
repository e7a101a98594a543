"""A failure as a short script that shows it again, on its own: `harness.replay` makes the call."""

from __future__ import annotations

from dataclasses import MISSING, fields
from typing import Any

from harness import discovery
from harness.judging.subject import Subject


def script(subject: Subject, call: Any, reason: str) -> str:
    """A Python script that makes the call again and prints what is wrong. `harness` must be importable where it runs.

    `call` is a frozen dataclass that says everything about the call: a `Scenario`, or a hostile call of the fuzzer.
    """
    kind = type(call)
    # Stored scripts must survive moves of modules: a Scenario is always imported from the same place.
    module = "harness.scenario" if kind.__name__ == "Scenario" else kind.__module__
    given = [field.name for field in fields(call) if getattr(call, field.name) != _default(field)]
    arguments = ", ".join(f"{name}={getattr(call, name)!r}" for name in given)
    who = "candidate" if subject.source else "backend"
    contract = discovery.contract_file(subject.operator.name)
    headline = reason.splitlines()[0].replace("\\", "\\\\").replace('"', "'")
    return "\n".join(
        [
            f'"""{headline}"""',
            "from harness.replay import replay",
            f"from {module} import {kind.__name__}",
            "",
            f"scenario = {kind.__name__}({arguments})",
            "replay(",
            f"    operator={subject.operator.name!r},",
            *([f"    contract={str(contract)!r},"] if contract is not None else []),
            *([f"    form={subject.operator.form!r},"] if subject.operator.form else []),
            f"    {who}={subject.source or subject.backend!r},",
            f"    device={subject.device!r},",
            f"    dtype={subject.dtype_name!r},",
            "    scenario=scenario,",
            ")",
            "",
        ]
    )


def _default(field: Any) -> object:
    return field.default if field.default is not MISSING else MISSING
