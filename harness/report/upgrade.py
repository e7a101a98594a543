"""Upgrade reports of earlier versions to the present one, so that old reports can still be read.

Version 1 gave the drift of a recurrence in the names of figures, `new_h after 10`; since version 2 it is a list. It
gave the error of a failure only in the text of the reason, so an upgraded failure has no gauge.
"""

from __future__ import annotations

import copy
import re
from typing import Any

#: The versions that can be upgraded.
UPGRADED = (1,)
_STEPS = re.compile(r"^(?P<state>.+) after (?P<steps>[0-9]+)$")


def upgraded(record: dict[str, Any]) -> dict[str, Any]:
    """The document in the present version; a malformed one stays malformed, and the schema reports what is wrong."""
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
