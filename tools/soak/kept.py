"""Kept scenarios: finds in files of tests/scenarios, which `tests/meta/test_kept_scenarios.py` replays."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from harness import discovery
from harness.errors import UsageError
from harness.judging.scenario import Scenario
from harness.report import strict_json
from harness.report.atomic_write import write_atomically
from harness.report.schema import breaches
from harness.running.selection import DTYPE_NAMES
from spec.contract import Operator
from tools.soak import calling
from tools.soak.calling import PASS
from tools.soak.implementations import right
from tools.soak.scenario_json import from_json
from tools.soak.state import FIND, State

FOLDER = Path("tests/scenarios")


def keep(state: State, folder: Path = FOLDER) -> list[Path]:
    """Move the finds of the state into files; returns them."""
    files = []
    while state.finds:
        find = state.finds[0]
        file = folder / f"{name_of(find)}.json"
        write_atomically(file, json.dumps(find, indent=1, allow_nan=False) + "\n")
        state.finds.pop(0)
        files.append(file)
    return files


def name_of(find: dict[str, Any]) -> str:
    """`mlp-bfloat16-huge-hidden-1f3a9c`: the place, the values, and a digest of the scenario."""
    scenario = find["scenario"]
    digest = hashlib.sha256(json.dumps(scenario, sort_keys=True).encode()).hexdigest()[:6]
    parts = (find["operator"], find["form"], find["dtype"], scenario["values"], digest)
    return "-".join(part for part in parts if part)


def read(file: Path) -> tuple[Operator, str, Scenario]:
    """The form of the operator, the dtype and the scenario of a kept file. Raises UsageError."""
    find = strict_json.load(file, f"there is no kept scenario {file}")
    wrong = breaches(find, FIND)
    if wrong:
        raise UsageError(f"{file} is no kept scenario: {strict_json.first_three(wrong)}")
    operator = discovery.operator(find["operator"])
    forms = [form.form for form in operator.every_form()]
    if find["form"] not in forms:
        raise UsageError(f"{file}: form was {find['form']!r}, but should be one of {', '.join(map(repr, forms))}")
    form = operator.in_form(find["form"])
    return form, find["dtype"], from_json(find["scenario"], form, str(file))


def alarms(form: Operator, dtype: str, scenario: Scenario, device: str) -> dict[str, str]:
    """The right implementations that the suite does not pass on the device, CPU or emulated CUDA, with the reasons."""
    assert dtype in DTYPE_NAMES
    found = {}
    for subject in right(form.name, dtype, device):
        result = calling.call(subject.in_form(form), scenario)
        if result.verdict != PASS:
            found[f"{subject.backend} on {device}"] = f"{result.verdict}: {result.reason}"
    return found
