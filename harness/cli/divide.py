"""`python -m harness divide`: judge in several processes of this machine, which share out the longest cells too."""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from pathlib import Path

from harness.cli import parsing, reports
from harness.cli.main import COMMANDS
from harness.errors import HarnessError, UsageError
from harness.rendering import tables
from harness.report.levels import exit_reason
from harness.report.report import Report, refuse_other_files
from harness.running.dividing import cores
from harness.running.option_values import whole

#: Options of `judge` that this command gives itself.
_OWN = ("--shard", "--divide", "--report", "--resume", "--watch", "--numprocesses")
#: What a process that shares its cores needs: one thread for itself, and one for a compiler that it starts.
_ONE_THREAD = {"OMP_NUM_THREADS": "1", "TORCHINDUCTOR_COMPILE_THREADS": "1"}
#: Lines of the output of a part that has no report.
_LINES = 12
_INTERRUPTED = 130


def _parser() -> argparse.ArgumentParser:
    made = parsing.parser("divide", COMMANDS["divide"])
    made.usage = "python -m harness divide [--processes N] [--parts N] [-o FILE] [-- options of judge]"
    made.add_argument(
        "--processes", type=whole(1), default=0, metavar="N", help="at the same time; default: one a core"
    )
    made.add_argument(
        "--parts", type=whole(1), default=0, metavar="N", help="of the run; default: as many as processes"
    )
    parsing.add_output(made, "where the joined report goes; default: %(default)s", parsing.DEFAULT_REPORT)
    return made


def main(arguments: Sequence[str]) -> int:
    """Exit code 1 if the joined report is not green, by the rule of `levels.exit_reason`; 130 if interrupted.

    Raises UsageError for options that are this command's own, and for those that `judge` refuses. A part whose process
    ended without a report is missing in the joined one, which is not complete then.
    """
    dashes = list(arguments).index("--") if "--" in arguments else len(arguments)
    given, options = _parser().parse_args(arguments[:dashes]), list(arguments[dashes + 1 :])
    taken = next((option for option in options if option.partition("=")[0] in _OWN or option.startswith("-n")), None)
    if taken is not None:
        raise UsageError(f"{taken} was given to judge, but `divide` gives it itself: leave it out")
    processes = given.processes or cores()
    refuse_other_files("--output", given.output)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        report = _judged(options, processes, given.parts or processes)
    except KeyboardInterrupt:
        print("interrupted: no part is kept", file=sys.stderr)
        return _INTERRUPTED
    reports.write(given.output, report.write)
    tables.print_report(report, tables.console(sys.stdout))
    why = exit_reason(report)
    print(f"\nreport: {given.output}{f', but the run is not green: {why}' if why else ''}")
    return 1 if why else 0


def _judged(options: Sequence[str], processes: int, parts: int) -> Report:
    """The joined report of all parts. Raises HarnessError if no part has one."""
    told: set[str] = set()
    with (
        tempfile.TemporaryDirectory() as scratch,
        ThreadPoolExecutor(processes) as pool,
        _ended_with_this(pool) as running,
    ):

        def judge(number: int) -> tuple[int, int, float]:
            began = time.monotonic()
            shard = ["--shard", f"{number}/{parts}"] + (["--divide"] if parts > 1 else [])
            command = [sys.executable, "-m", "harness", "judge", "-n", "0", *options, *shard]
            with (Path(scratch) / f"{number}.log").open("wb") as log:
                process = subprocess.Popen(
                    [*command, "--report", f"{scratch}/{number}.json"],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    env={**_ONE_THREAD, **os.environ},
                )
                running.append(process)
                return number, process.wait(), time.monotonic() - began

        for done in as_completed([pool.submit(judge, number) for number in range(1, parts + 1)]):
            number, code, seconds = done.result()
            print(f"part {number} of {parts}: {seconds:.0f} s, exit code {code}", flush=True)
            says = "" if (Path(scratch) / f"{number}.json").exists() else _end_of(Path(scratch) / f"{number}.log")
            if says and says not in told:
                print(says, file=sys.stderr, flush=True)
            told.add(says)
        made = sorted(Path(scratch).glob("*.json"), key=lambda path: int(path.stem))
        if not made:
            raise HarnessError("no part has a report: what judge said is above")
        return reports.read(made)


@contextmanager
def _ended_with_this(pool: ThreadPoolExecutor) -> Iterator[list[subprocess.Popen[bytes]]]:
    """A list of processes that end if the block does, by an interrupt or an error: no other is begun then."""
    running: list[subprocess.Popen[bytes]] = []
    try:
        yield running
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        for process in running:
            process.terminate()  # nothing happens to one that has ended


def _end_of(log: Path) -> str:
    return "\n".join(log.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-_LINES:])
