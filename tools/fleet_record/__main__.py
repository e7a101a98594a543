"""`python -m tools.fleet_record`: judge many mutants by a fleet that loses a worker, a node and its head meanwhile.

The fleet runs on a Ray cluster of this machine: a head without room, and nodes of one worker each. After a quarter of
the candidates, a worker process is killed in the middle of its work. After half of them, a node is lost, and a new one
comes. After three quarters, the process of the fleet itself is killed, and another one goes on. The record says how
many candidates were lost or judged again without need: both should be 0. Needs Ray.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from harness.report.atomic_write import write_atomically
from tools.fleet_record import candidates, lives

RECORD = Path(__file__).parents[2] / "results" / "cpu" / "fleet.json"


def main(arguments: Sequence[str]) -> int:
    """Exit code 1 if a candidate was lost, or judged again without need."""
    parser = argparse.ArgumentParser(prog="python -m tools.fleet_record", description=__doc__)
    parser.add_argument("--count", type=int, default=2000, help="candidates")
    parser.add_argument("--nodes", type=int, default=2, help="nodes of the cluster, with one worker each")
    parser.add_argument(
        "--folder", type=Path, default=Path("reports/fleet-record"), help="for results; should be empty"
    )
    parser.add_argument("-o", "--output", type=Path, default=RECORD)
    given = parser.parse_args(arguments)
    given.folder.mkdir(parents=True)
    items, results, log = candidates.made(given.count), given.folder / "results.sqlite", given.folder / "log.txt"
    log.touch()
    began = time.monotonic()
    while not lives.lived(items, results, log, given.nodes):
        if "killed-head" not in log.read_text():
            print("the fleet ended without a reason", file=sys.stderr)
            return 2
    found = lives.record(items, results, log, time.monotonic() - began)
    given.output.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(given.output, json.dumps(found, indent=1) + "\n")
    print(json.dumps(found, indent=1))
    return int(bool(found["lost"] or found["judged_twice"] or found["started_again_without_need"]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
