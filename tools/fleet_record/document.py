"""The record of a fleet in words, for docs/fleet.md."""

from __future__ import annotations

from typing import Any

_HARM = {
    "killed-worker": "a worker was killed",
    "lost-node": "a node was lost, and another one came",
    "killed-head": "the process of the fleet was killed, and the same command went on",
}


def text(record: dict[str, Any]) -> str:
    """One paragraph, and a table of the verdicts."""
    machine, again = record["environment"], record["started_again"]
    operators = ", ".join(f"{count:,} of {name}" for name, count in record["operators"].items())
    verdicts = ", ".join(f"{count:,} {name}" for name, count in sorted(record["verdicts"].items()))
    return (
        f"{record['candidates']:,} mutants of right functions ({operators}), judged with "
        f"`{' '.join(record['options'])}` on a Ray cluster of two nodes on one machine: {machine['cpu']}, "
        f"{record['cores']} cores, torch {machine['torch']}. "
        f"Meanwhile {'; '.join(_HARM[name] for name in record['harm'])}.\n\n"
        "| | |\n|---|---|\n"
        f"| candidates without a verdict | {record['lost']} |\n"
        f"| with two verdicts | {record['judged_twice']} |\n"
        f"| begun again without need | {record['started_again_without_need']} |\n"
        f"| begun again because a worker or a node, or the fleet, ended | "
        f"{again['after_a_worker_or_node']}, {again['after_the_head']} |\n"
        f"| verdicts | {verdicts} |\n"
        f"| candidates a minute, the three ends included | {record['a_minute']:g} |\n"
        f"| processor seconds of the judge, for one candidate | {record['judge_cpu_seconds']:g} |\n"
        f"| load of the machine at the end, of 1, 5 and 15 minutes | {', '.join(f'{x:g}' for x in record['load'])} |\n"
    )
