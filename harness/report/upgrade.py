"""Upgrade reports of earlier versions to the present one, so that old reports can still be read.

Version 1 gave the drift of a recurrence in the names of figures, `new_h after 10`; since version 2 it is a list. It
gave the error of a failure only in the text of the reason, so an upgraded failure has no gauge. Version 2 had no
levels: every property gets the level that it had when version 3 began, and all levels are required, as they were.
"""

from __future__ import annotations

import copy
import re
from typing import Any

from harness.report.levels import GRADIENTS, PRODUCTION, PYTORCH, SAFE, VALUES

#: The versions that can be upgraded.
UPGRADED = (1, 2)
_STEPS = re.compile(r"^(?P<state>.+) after (?P<steps>[0-9]+)$")

#: The properties of versions 1 and 2. Later properties are never added here: no old report has them.
_BY_LEVEL = {
    VALUES: (
        "drawn-calls",
        "forward-parity",
        "invariants",
        "layouts",
        "many-elements",
        "no-special-treatment",
        "sizes",
        "wide-offsets",
    ),
    GRADIENTS: ("double-backward", "gradcheck", "gradient-subsets", "recurrence", "vjp-parity"),
    SAFE: (
        "autograd-hooks",
        "concurrent-threads",
        "determinism",
        "inference-modes",
        "memory",
        "no-side-effects",
        "repeated-backward",
        "uninitialised-memory",
    ),
    PYTORCH: (
        "autocast",
        "compile",
        "error-messages",
        "export",
        "fake-tensors",
        "functional-transforms",
        "global-state",
        "opcheck",
        "reduce-overhead",
        "rejects-wrong-calls",
    ),
    PRODUCTION: (
        "cuda-graphs",
        "current-stream",
        "multiprocessing",
        "no-waiting",
        "other-device",
        "record-stream",
    ),
}
_LEVELS = {name: level for level, names in _BY_LEVEL.items() for name in names}


def upgraded(record: dict[str, Any]) -> dict[str, Any]:
    """The document in the present version; a malformed one stays malformed, and the schema reports what is wrong."""
    version = record.get("schema")
    if version not in UPGRADED:
        return record
    found = {**copy.deepcopy(record), "schema": 3, "required": PRODUCTION}
    if version == 1:
        _gather_drift(found)
        found.setdefault("suite", _suite_of(found))
    _set_levels(found)
    return found


def _gather_drift(record: dict[str, Any]) -> None:
    for cell in _rows(record):
        figures = cell.get("figures")
        if isinstance(figures, dict):
            _gather(figures)
            forms = figures.get("forms")
            for inner in forms.values() if isinstance(forms, dict) else ():
                if isinstance(inner, dict):
                    _gather(inner)


def _gather(figures: dict[str, Any]) -> None:
    """Replace every `STATE after N` by an entry of `drift`."""
    drift = []
    for name in list(figures):
        match, value = _STEPS.match(name), figures[name]
        if match and isinstance(value, dict) and {"error", "allowed"} <= set(value):
            drift.append({"state": match["state"], "steps": int(match["steps"]), **figures.pop(name)})
    if drift:
        figures["drift"] = drift


def _suite_of(record: dict[str, Any]) -> dict[str, Any]:
    """A suite that knows what the cells name: version 1 recorded none. Levels need its properties and backends."""
    named, backends = ({str(cell.get(name)) for cell in _rows(record)} for name in ("property", "backend"))
    known = [{"name": name, "claim": "", "view": "", "noticed": 0, "asked": 0, "faults": 0} for name in sorted(named)]
    return {"operators": [], "backends": sorted(backends), "devices": [], "dtypes": [], "properties": known}


def _set_levels(record: dict[str, Any]) -> None:
    suite = record.get("suite")
    known = suite.get("properties") if isinstance(suite, dict) else None
    for entry in known if isinstance(known, list) else ():
        if isinstance(entry, dict):
            entry.setdefault("level", _LEVELS.get(str(entry.get("name")), PRODUCTION))


def _rows(record: dict[str, Any]) -> list[dict[str, Any]]:
    cells = record.get("cells")
    return [cell for cell in cells if isinstance(cell, dict)] if isinstance(cells, list) else []
