"""Ask the instruments, write the record, show its section; or draw records into docs/performance.md."""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

from harness.bench import record
from harness.errors import HarnessError
from harness.gate.statistics import MINIMUM_LAUNCHES
from harness.gate.verdict import EXIT_CODES, FAILED, INCONCLUSIVE, PASSED
from harness.rendering.tables import insert
from harness.running import environment
from spec.contract import PHASES
from tools.instruments import __doc__ as meaning
from tools.instruments.agreement import AGREE, DISAGREE, overall
from tools.instruments.drawing import DOCUMENT, judgements, section
from tools.instruments.instruments import Plan, launch

KIND = "instruments"
#: What is timed by default: of each device, the backend and the cases of LLTM.
BACKENDS = {"cpu": "cpu-fused", "cuda": "cuda-fused"}


def main() -> int:
    """0: they agree. 1: they disagree. 4: the intervals are too wide to tell, or an instrument gives no times here."""
    given = _parser().parse_args()
    if given.draw:
        document = DOCUMENT.read_text(encoding="utf-8")
        for path in given.draw:
            document = insert(section(record.read(path, KIND, "--draw")), document, str(path))
        DOCUMENT.write_text(document, encoding="utf-8")
        return 0
    try:
        made = measured(given)
    except HarnessError as error:  # such as times that the gate does not believe, because the machine is busy
        print(f"the instruments cannot be compared here: {error}", file=sys.stderr)
        return EXIT_CODES[INCONCLUSIVE]
    record.write(made, given.output)
    print(section(made))
    verdict = overall(judgements(made))
    return EXIT_CODES[{AGREE: PASSED, DISAGREE: FAILED}.get(verdict, INCONCLUSIVE)]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tools.instruments",
        description=meaning,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--operator", default="lltm")
    parser.add_argument("--case", action="append", help="repeatable; default: tutorial")
    parser.add_argument("--phase", action="append", choices=PHASES, help="repeatable; default: all")
    parser.add_argument("--device", default="cpu", choices=sorted(BACKENDS))
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--backend", help=f"default: {', '.join(f'{b} on {d}' for d, b in BACKENDS.items())}")
    parser.add_argument("--reference", default="python-autograd", help="the backend that it is compared with")
    parser.add_argument("--launches", type=int, default=5, help="starts of each instrument")
    parser.add_argument("--seed", type=int, default=0, help="of all orders")
    parser.add_argument("-o", "--output", type=Path, default=Path("reports/instruments.json"), metavar="FILE")
    parser.add_argument("--draw", type=Path, nargs="+", metavar="RECORD")
    return parser


def measured(given: argparse.Namespace) -> dict[str, Any]:
    """The record of that many launches. Raises a HarnessError if an instrument fails."""
    if given.launches < MINIMUM_LAUNCHES:
        sys.exit(f"--launches was {given.launches}, but should be at least {MINIMUM_LAUNCHES}")
    cases, phases = given.case or ["tutorial"], given.phase or PHASES
    plan = Plan(
        given.operator,
        given.reference,
        given.backend or BACKENDS[given.device],
        given.device,
        given.dtype,
        tuple((case, phase) for case in cases for phase in phases),
    )
    draw, launches = random.Random(given.seed), []
    with tempfile.TemporaryDirectory() as folder:
        for number in range(given.launches):
            print(f"launch {number + 1} of {given.launches}", file=sys.stderr, flush=True)
            launches.append(launch(plan, Path(folder), draw))
    return {
        "kind": KIND,
        "schema": record.SCHEMA,
        "environment": environment.describe(),
        "settings": {**asdict(plan), "launches": given.launches, "seed": given.seed},
        "places": [
            {
                "case": case,
                "phase": phase,
                "launches": [{name: found[name][case, phase] for name in sorted(found)} for found in launches],
            }
            for case, phase in plan.places
        ],
    }


if __name__ == "__main__":
    sys.exit(main())
