"""A scenario as JSON, and back."""

from __future__ import annotations

from typing import Any

from harness.errors import UsageError
from harness.judging.scenario import COTANGENTS, LAYOUTS, Scenario
from spec.contract import Operator


def to_json(scenario: Scenario) -> dict[str, Any]:
    """The fields that say something, by name."""
    found: dict[str, Any] = {"sizes": dict(scenario.sizes), "values": scenario.values, "seed": scenario.seed}
    if scenario.layouts:
        found["layouts"] = dict(scenario.layouts)
    if scenario.cotangents:
        found["cotangents"] = dict(scenario.cotangents)
    if scenario.wanted is not None:
        found["wanted"] = list(scenario.wanted)
    return found


def from_json(record: dict[str, Any], operator: Operator, where: str) -> Scenario:
    """The scenario of a record that its schema allows. Raises UsageError for unknown names; it begins with `where`."""
    inputs = [arg.name for arg in operator.inputs]
    differentiable = [arg.name for arg in operator.inputs if arg.differentiable]
    layouts, cotangents = record.get("layouts", {}), record.get("cotangents", {})
    families = ["normal", *(family.name for family in operator.families)]
    if sorted(record["sizes"]) != sorted(operator.symbols()):
        was, should = ", ".join(record["sizes"]), ", ".join(operator.symbols())
        raise UsageError(f"{where}: sizes had {was}, but should have {should}, the sizes of {operator.title}")
    for what, names, known in (
        ("values", [record["values"]], families),
        ("layouts", list(layouts), inputs),
        ("a layout", list(layouts.values()), list(LAYOUTS)),
        ("cotangents", list(cotangents), [arg.name for arg in operator.outputs]),
        ("a cotangent", list(cotangents.values()), list(COTANGENTS)),
        ("wanted", record.get("wanted", []), differentiable),
    ):
        for name in names:
            if name not in known:
                raise UsageError(f"{where}: {what} was {name!r}, but should be one of {', '.join(known)}")
    return Scenario(
        # In the order of the contract, as they are drawn: a scenario is a key of the oracle.
        sizes=tuple((symbol, record["sizes"][symbol]) for symbol in operator.symbols()),
        seed=record["seed"],
        values=record["values"],
        layouts=tuple(layouts.items()),
        cotangents=tuple(cotangents.items()),
        wanted=tuple(record["wanted"]) if "wanted" in record else None,
    )
