"""`python -m tools.mutation`: mutate the shipped backends, and check whether the suite notices."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

from harness.errors import UnknownName
from harness.properties import all_properties
from harness.rendering import tables
from harness.report.report import jsonable
from harness.running import strength
from tools.mutation import account, document, on_gpu, runner
from tools.mutation.judging import KILLED
from tools.mutation.runner import Options


def main(arguments: list[str]) -> int:
    """Exit code 1 if the score is too low, the ledger is stale or a right implementation is rejected."""
    parser = argparse.ArgumentParser(prog="python -m tools.mutation", description=__doc__)
    parser.add_argument(
        "--all",
        action="store_true",
        help="every mutant, also those that the ledger explains; by default some are drawn, always the same",
    )
    parser.add_argument(
        "--only", action="append", default=[], metavar="PATTERN", help="mutants whose «id new-line» matches"
    )
    parser.add_argument("--property", action="append", default=[], metavar="NAME", help="judge by this property alone")
    parser.add_argument("--list", action="store_true", help="list the mutants and run nothing")
    parser.add_argument("--seeds", type=int, default=1, metavar="N", help="judge the zoo's controls with N seeds")
    parser.add_argument("--no-zoo", action="store_true", help="leave out the hand-written faults and controls")
    parser.add_argument("--no-sanitize", action="store_true", help="do not judge survivors under AddressSanitizer")
    parser.add_argument("--report", type=Path, default=Path("reports/mutation.json"), metavar="FILE")
    parser.add_argument(
        "--draw", type=Path, metavar="RECORD", help="draw docs/mutation.md and the page's scores; run nothing"
    )
    parser.add_argument("--on-gpu", action="store_true", help="judge the mutants that only a GPU shows, on this one")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args(arguments)
    console = tables.console(sys.stdout)
    if chosen.draw:
        record = json.loads(chosen.draw.read_text())
        document.DOCUMENT.write_text(document.insert(record, document.DOCUMENT.read_text()))
        strength.FILE.write_text(json.dumps(document.strength(record), indent=1) + "\n")
        return 0
    if chosen.serve:
        runner.serve()
        return 0
    if chosen.on_gpu:
        with tempfile.TemporaryDirectory(prefix="lltm-mutation-") as folder:
            record = on_gpu.run(account.read_ledger(), Path(folder))
        chosen.report.parent.mkdir(parents=True, exist_ok=True)
        chosen.report.write_text(json.dumps(jsonable(record), indent=1, allow_nan=False) + "\n")
        for row in record["mutants"]:
            console.print(f"{row['status']} by {row['property']}: {row['id']} {row['message']}", markup=False)
        return int(any(row["status"] != KILLED for row in record["mutants"]))
    for name in chosen.property:
        if name not in all_properties():
            parser.error(str(UnknownName("property", name, all_properties())))
    options = Options(
        everything=chosen.all,
        only=tuple(chosen.only),
        seeds=chosen.seeds,
        zoo=not chosen.no_zoo,
        sanitize=not chosen.no_sanitize,
        properties=tuple(chosen.property),
    )
    if chosen.list:
        cases, enumerated = runner.drawn(options.everything, options.only)
        for case in cases:
            mutant = case.mutant
            console.print(f"{mutant.id}\n  - {mutant.before}\n  + {mutant.after}", markup=False, highlight=False)
        account.announce(console, cases, enumerated)
        return 0
    result = runner.run(console, options)
    account.show(console, result)
    account.write(result, chosen.report)
    console.print(f"report: {chosen.report}", highlight=False)
    return 1 if result.complaints else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
