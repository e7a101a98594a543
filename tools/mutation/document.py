"""Draw the tables of docs/mutation.md from the record of a run: `python -m tools.mutation --draw RECORD`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from harness.rendering import tables
from tools.mutation.account import KINDS, ON_GPU
from tools.mutation.judging import KILLED, SURVIVED

DOCUMENT = Path("docs/mutation.md")


def insert(record: dict[str, Any], document: str) -> str:
    """`document` with everything between its markers redrawn."""
    for name, text in drawn(record).items():
        document = tables.insert(text, document, name)
    return document


def drawn(record: dict[str, Any]) -> dict[str, str]:
    """The tables by the names of their markers."""
    return {
        "run": _run(record),
        "scores": _table(*record["scores"]),
        "kills": _kills(record),
        "ledger": _ledger(record["mutants"]),
    }


def _run(record: dict[str, Any]) -> str:
    faults, controls = record["faults"], record["controls"]
    noticed = sum(fault["status"] == KILLED for fault in faults)
    alarms = sum(len(control["false_alarms"]) for control in controls)
    judged = sum(mutant["status"] in (KILLED, SURVIVED) for mutant in record["mutants"])
    machine = record["environment"]
    return (
        f"{len(record['mutants'])} mutants of {sum(record['enumerated'].values())} were drawn and {judged} judged: "
        f"score {record['score']:.1%}. {noticed} of {len(faults)} hand-written faults were noticed; {len(controls)} "
        f"controls, {alarms} false alarms. torch {machine['torch']}, {machine['cpu']}.\n"
    )


def _kills(record: dict[str, Any]) -> str:
    """How many mutants and faults each property was the first to notice, sorted by number."""
    of_mutants, of_faults = (
        Counter(_noticed_by(outcome["by"]) for outcome in record[part] if outcome["status"] == KILLED)
        for part in ("mutants", "faults")
    )
    names = sorted({*of_mutants, *of_faults}, key=lambda name: (-of_mutants[name] - of_faults[name], name))
    rows = [[name, str(of_mutants[name]), str(of_faults[name])] for name in names]
    return _table(["noticed first by", "mutants", "hand-written faults"], *rows)


def strength(record: dict[str, Any]) -> dict[str, Any]:
    """The data for `harness.running.strength`. Each mutant was judged by property after property until one failed."""
    order = [(check["property"], check["dtype"].removeprefix("torch.")) for check in record["hearings"]]
    judged = [mutant for mutant in record["mutants"] if mutant["status"] in (KILLED, SURVIVED)]
    # The index of the check that noticed each mutant, or the number of checks if only AddressSanitizer or nothing did.
    reached = []
    for mutant in judged:
        check = (_noticed_by(mutant["by"]), mutant["dtype"].removeprefix("torch."))
        reached.append(order.index(check) if mutant["status"] == KILLED and check in order else len(order))
    faults = Counter(_noticed_by(fault["by"]) for fault in record["faults"] if fault["status"] == KILLED)
    properties = {}
    for name in dict.fromkeys(name for name, _ in order):
        first = next(place for place, (other, _) in enumerate(order) if other == name)
        noticed = sum(place < len(order) and order[place][0] == name for place in reached)
        asked = sum(place >= first for place in reached)
        properties[name] = {"noticed": noticed, "asked": asked, "faults": faults[name]}
    return {"commit": record["environment"]["commit"], "properties": properties}


def _noticed_by(by: str) -> str:
    """The name of the property: vjp-parity for `vjp-parity: crash (SIGSEGV)`."""
    sanitized, _, rest = by.rpartition("sanitize: ")
    return rest.partition(":")[0] + (", under AddressSanitizer" if sanitized or by != rest else "")


def _ledger(mutants: Iterable[dict[str, Any]]) -> str:
    """The mutants that were not killed, by kind, each with its reason."""
    rows = []
    for mutant in mutants:
        if mutant["status"] != KILLED and (mutant["explained"] or mutant["status"] == SURVIVED):
            kind = mutant["explained"] or "follow-up"
            rows.append([kind, f"`{mutant['id']}`", f"`{_shown(mutant)}`", mutant["message"]])
    order = (*KINDS, ON_GPU)
    rows.sort(key=lambda row: order.index(row[0]) if row[0] in order else len(order))
    return _table(["kind", "mutant", "line as it is then", "reason"], *rows)


def _shown(mutant: dict[str, Any]) -> str:
    return str(mutant["after"]).replace("|", "\\|")


def _table(header: Sequence[str], *rows: Sequence[str]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"
