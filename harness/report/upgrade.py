"""Reports of earlier versions, brought to the present one, so that an old report is still read.

Version 1 told the drift of a recurrence by the names of figures, `new_h after 10`; since version 2 it is a list. It
told the error of a failure in the reason alone, so that an upgraded failure has no gauge.
"""

from __future__ import annotations

import copy
import re
from typing import Any

#: The versions that can be upgraded.
UPGRADED = (1,)
_STEPS = re.compile(r"^(?P<state>.+) after (?P<steps>[0-9]+)$")


def upgraded(record: dict[str, Any]) -> dict[str, Any]:
    """The document in the present version; one that is malformed stays so, for the schema to say what is wrong."""
    if record.get("schema") not in UPGRADED:
        return record
    found = {**copy.deepcopy(record), "schema": 2}
    for cell in found["cells"] if isinstance(found.get("cells"), list) else []:
        figures = cell.get("figures") if isinstance(cell, dict) else None
        if isinstance(figures, dict):
            _gather(figures)
            forms = figures.get("forms")
            for inner in forms.values() if isinstance(forms, dict) else ():
                if isinstance(inner, dict):
                    _gather(inner)
    return found


def _gather(figures: dict[str, Any]) -> None:
    """Replace every `STATE after N` by an entry of `drift`."""
    drift = []
    for name in list(figures):
        match, value = _STEPS.match(name), figures[name]
        if match and isinstance(value, dict) and {"error", "allowed"} <= set(value):
            drift.append({"state": match["state"], "steps": int(match["steps"]), **figures.pop(name)})
    if drift:
        figures["drift"] = drift
