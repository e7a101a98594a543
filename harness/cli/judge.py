"""Run the suite from anywhere: `python -m harness judge` is pytest with this plugin."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from backends.devices import CPU, HAS_NVIDIA_GPU
from harness.candidate import by_forward, candidate
from harness.cli import watching
from harness.errors import HarnessError
from harness.pytest_plugin import invocation
from harness.running import forking, launching, serving

#: Prefixes of options with which one process is used: too little work for several, or a debugger.
_ONE_PROCESS = (
    "-k",
    "-n",
    "-p",
    "-s",
    "--numprocesses",
    "--pdb",
    "--capture",
    "--dtype",
    "--isolate",
    "--resume",
    "--property",
    "--quick",
)
#: Up to so many cores, one candidate is judged by one process.
_FEW_CORES = 4


def main(arguments: Sequence[str]) -> int:
    """Judge once; with `--watch FILE`, again after each change of the file. Raises UsageError if there is none.

    If a server runs (`python -m harness serve`), it judges.
    """
    files, others = watching.read(arguments)
    if files:
        return watching.again(files, lambda: judge(others))
    code = serving.judged(others)
    return judge(others) if code is None else code


def judge(arguments: Sequence[str]) -> int:
    """pytest on the suite's tests, with pytest's own exit code. `arguments` are options of pytest and of the plugin.

    A whole run is spread over the cores by pytest-xdist; `-n 0`, or an option that narrows the selection, prevents it.
    So does a single candidate on few cores, or beside a GPU: a judge for each dtype (`harness.running.dividing`,
    `harness.running.further_judge`) imports nothing, and each worker costs the seconds in which three processes more
    import torch.
    """
    os.environ["PYTHONSAFEPATH"] = "1"  # the workers' Python: a candidate's author may write to the working folder
    forking.ask_nvml()
    candidates = _start_early(arguments)
    alone = candidates == 1 and (len(os.sched_getaffinity(0)) <= _FEW_CORES or HAS_NVIDIA_GPU)
    is_narrow = any(option.startswith(_ONE_PROCESS) for option in arguments)
    spread = [] if alone or is_narrow else ["-n", "auto", "--dist", "loadgroup"]
    code = invocation.judged([*spread, *arguments])
    try:
        sys.stdout.flush()
    except BrokenPipeError:  # as `head` leaves it: Python would fail once more at its exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return code


def _start_early(arguments: Sequence[str]) -> int:
    """Start the process of the first candidate; returns how many there are. What is wrong is told later, by pytest."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    parser.add_argument("--candidate", action="append", default=[])
    for name in ("--device", "--reference", "--isolate", "--sandbox"):
        parser.add_argument(name, default="")
    parser.add_argument("--forward-only", action="store_true")
    try:
        given, _ = parser.parse_known_args(arguments)
        if given.candidate and given.isolate != "off" and "-h" not in arguments and "--help" not in arguments:
            text = given.candidate[0]
            named = text if "=" in text else f"{given.reference.rpartition(':')[2]}={text}"
            if given.forward_only and not given.reference:
                named = by_forward(named)
            launching.begin_candidate(candidate(named).text, given.sandbox or "auto", given.device or CPU)
    except (argparse.ArgumentError, HarnessError):
        return 0
    return len(given.candidate)
