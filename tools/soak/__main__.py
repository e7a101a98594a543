"""`python -m tools.soak`: call right implementations on drawn scenarios, and look for calls that the suite fails."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from backends.base import CPU
from harness import discovery
from harness.errors import HarnessError, UnknownName
from harness.pytest_plugin.report_lock import ReportLock
from harness.running import option_values, selection_options
from harness.running.selection import DTYPE_NAMES
from tools.soak import kept, table
from tools.soak.batch import EXAMPLES, Place
from tools.soak.implementations import DEVICES
from tools.soak.soaking import Limits, Soak, described, stopped_by_signals
from tools.soak.state import State


def places(operators: Sequence[str], dtypes: Sequence[str], device: str) -> list[Place]:
    """Every form of these operators in these dtypes; of all without names. Raises UnknownName, Unavailable."""
    discovery.require_device(device)
    known = discovery.operators()
    for kind, names, all_names in (("operator", operators, known), ("dtype", dtypes, DTYPE_NAMES)):
        for name in names:
            if name not in all_names:
                raise UnknownName(kind, name, all_names)
    return [
        Place(name, form.form, dtype, device)
        for name in operators or known
        for form in known[name].every_form()
        for dtype in dtypes or DTYPE_NAMES
    ]


def _minutes(text: str) -> float:
    """A time above 0."""
    try:
        return option_values.seconds(text)
    except argparse.ArgumentTypeError as error:
        raise argparse.ArgumentTypeError(str(error).replace("seconds", "minutes")) from None


def _parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="python -m tools.soak", description=__doc__)
    made.add_argument(
        "--state", type=Path, default=Path("reports/soak.json"), metavar="FILE", help="goes on where this file stopped"
    )
    made.add_argument("--minutes", type=_minutes, metavar="M", help="end after M minutes; default: never")
    made.add_argument(
        "--calls", type=option_values.whole(1), metavar="N", help="end where the state has N calls in all"
    )
    made.add_argument(
        "--workers", type=option_values.whole(1, 256), default=1, metavar="N", help="processes of one thread each"
    )
    made.add_argument(
        "--batch",
        type=option_values.whole(1),
        default=EXAMPLES,
        metavar="N",
        help=f"scenarios of a batch, which is what a signal loses; default: {EXAMPLES}",
    )
    made.add_argument("--device", choices=sorted(DEVICES), default=CPU, help="cpu, with emulated CUDA, or cuda")
    selection_options.add(made.add_argument, ("operator", "dtype"))
    other = made.add_mutually_exclusive_group()
    other.add_argument(
        "--keep", action="store_true", help=f"move the finds of the state to {kept.FOLDER}, and call nothing"
    )
    other.add_argument("--table", action="store_true", help=f"draw the state into {table.DOCUMENT}, and call nothing")
    return made


def main(arguments: Sequence[str]) -> int:
    """Exit code 1 if the state has finds, 2 for wrong usage and for a batch that cannot be run."""
    given = _parser().parse_args(arguments)
    try:
        return _run(given)
    except HarnessError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


def _run(given: argparse.Namespace) -> int:
    path: Path = given.state
    if given.table:
        table.DOCUMENT.write_text(table.insert(State.read(path), table.DOCUMENT.read_text()))
        return 0
    lock = ReportLock(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    lock.take()
    try:
        if given.keep:
            return _keep(path)
        return _soak(given, path)
    finally:
        lock.release()


def _keep(path: Path) -> int:
    state = State.read(path)
    for file in kept.keep(state):
        print(file)
    state.write(path)
    return 0


def _soak(given: argparse.Namespace, path: Path) -> int:
    state = State.read(path) if path.exists() else State()
    soak = Soak(state, path, places(given.operator, given.dtype, given.device), lambda text: print(text, flush=True))
    limits = Limits(None if given.minutes is None else 60 * given.minutes, given.calls)
    with stopped_by_signals(soak):
        soak.run(limits, given.workers, given.batch)
    print(soak.progress())
    for find in state.finds:
        print(described(find))
    print(f"state: {path}")
    return 1 if state.finds else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
