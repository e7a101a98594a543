"""Measure what attacks on the measurement of time gain, each beside the same function without the attack.

    python -m tools.study.timing -o results/nvidia-h200/timing-attacks.json              # about 2 minutes on an H200
    python -m tools.study.timing --device cpu -o reports/timing-attacks.json             # without CUDA streams

A gain is the seconds of a call of the function without the attack, divided by those of the attack, round by round.
`honest` is the function of `python-autograd` in a process of its own: its gain says what a ratio is good to.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import torch

from backends.base import CPU, CUDA
from harness.bench import rounds
from harness.bench.measurement import Settings, measure
from harness.bench.record import find, write
from harness.running.selection import Selection, slots
from spec.contract import FORWARD

KIND, SCHEMA = "timing-attacks", 1
FOLDER = Path(__file__).parents[2] / "tests" / "zoo" / "gaming"
REFERENCE = "python-autograd"
#: For each attack what makes the same calls without it. `clock_patched` makes ten, and `put_off` makes them later.
WITHOUT = {
    "honest": REFERENCE,
    "patches_events": "plain",
    "slows_the_baseline": "plain",
    "clock_patched": REFERENCE,
    "put_off": REFERENCE,
    "other_stream": "plain",
    "overlaps_streams": "plain",
}
STREAMS = ("other_stream", "overlaps_streams")


def study(device: str, settings: Settings) -> dict[str, Any]:
    """The record: every attack that the device can run, timed together with what it is compared with."""
    names = ["plain", *(name for name in WITHOUT if device == CUDA or name not in STREAMS)]
    chosen = Selection(
        operators=("lltm",),
        backends=(REFERENCE,),
        devices=(device,),
        dtypes=("float32",),
        candidates=tuple(f"lltm={FOLDER / f'timing_{name}.py'}:{name}" for name in names),
    )
    record = measure(slots(chosen), settings, say=lambda text: print(text, flush=True))
    about = {key: record[key] for key in ("environment", "settings")}
    return {"kind": KIND, "schema": SCHEMA, **about, "attacks": gains(record, names)}


def gains(record: dict[str, Any], names: list[str]) -> list[dict[str, Any]]:
    """For each place and attack `gain` and `seconds`, or `status` and `reason` if it has no times."""
    found = []
    places = ("device", "case", "phase", "clock")
    eager = [entry for entry in (*record["rows"], *record["missing"]) if entry["clock"] != "graph"]
    for place in dict.fromkeys(tuple(entry[key] for key in places) for entry in eager):
        where = dict(zip(places, place, strict=True))
        for name in names:
            row, missing = (find(record[part], backend=name, **where) for part in ("rows", "missing"))
            without = find(record["rows"], backend=WITHOUT.get(name, REFERENCE), **where)
            told: dict[str, Any] = {"status": "timed"}
            if row is not None:
                told["seconds"] = row["seconds"]
                if without is not None:
                    told |= {"beside": without["backend"], "gain": rounds.ratio(without["samples"], row["samples"])}
            elif missing is not None:
                told = {"status": missing["status"], "reason": missing["reason"]}
            found.append({"attack": name, **where, **told})
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=(CPU, CUDA), default=CUDA if torch.cuda.is_available() else CPU)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--case", nargs="+", default=["tutorial"])
    parser.add_argument("-o", "--output", type=Path, required=True)
    given = parser.parse_args()
    settings = Settings(rounds=given.rounds, threads=(1,), cases=tuple(given.case), phases=(FORWARD,))
    made = study(given.device, settings)
    write(made, given.output)
    for entry in made["attacks"]:
        gain = entry.get("gain", {})
        figures = f"{gain['median']} ({gain['low']} to {gain['high']})" if gain else entry.get("reason", "")
        print(f"{entry['attack']} {entry['case']}: {entry['status']} {figures}")


if __name__ == "__main__":
    main()
