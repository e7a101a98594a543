"""`python -m harness COMMAND`: the list of commands; each is a module that is imported when it is used."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence

from harness.errors import HarnessError, Unavailable, UnknownName

#: What each command does; `harness.cli.NAME` has its `main(arguments)`, which returns the exit code.
COMMANDS = {
    "judge": "judge operators and backends of any package; its options are those of pytest",
    "serve": "keep a server that has imported torch, so that `judge` starts at once; `--stop` ends it",
    "fleet": "judge many candidates from a folder, JSONL or Parquet, on all cores or GPUs, or on a Ray cluster",
    "show": "draw reports, merged into one, as a table",
    "html": "write a report as one HTML page",
    "markdown": "a summary for a pull request or a step summary",
    "annotations": "the failures as annotations of GitHub Actions, at the candidate's line",
    "junit": "JUnit XML for a CI system",
    "badge": "for an endpoint badge of shields.io",
    "divide": "judge in several processes that share out the calls of the longest cells too, and join their reports",
    "merge": "join the reports of shards, or of several runs, into one",
    "diff": "what got better, worse, appeared or vanished from A to B",
    "validate": "check files against the schema of reports",
    "bench": "what backends cost, as a record and as tables",
    "gate": "is this tree slower than another commit? Exit code 0 no, 1 yes, 4 cannot tell",
    "fuzz": "pass hostile arguments to compiled backends, in processes of their own",
    "contract": "show, or write, the contract that is derived from a reference function",
    "from-modules": "write a module and its rival (KernelBench's Model and ModelNew) as functions that can be judged",
    "reached": "build C++ and CUDA sources for gcov, judge them, and list what no call reached",
    "compute-sanitizer": "run CUDA kernels, a candidate's too, under compute-sanitizer; needs a GPU",
    "new-operator": "write a package with a contract and a backend that run",
    "new-backend": "copy a backend, to be changed",
    "compile-cuda": "compile the CUDA sources with nvcc; needs no GPU",
    "compile-rocm": "translate the CUDA sources and compile them with hipcc; needs no AMD GPU",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command that `arguments` name, by default those of the process; an error is one sentence.

    Exit codes: that of the command; 2 for wrong usage, 3 if this machine lacks what the command needs.
    """
    given = sys.argv[1:] if arguments is None else list(arguments)
    if not given or given[0].startswith("-"):
        _overview().parse_args(given)
        _overview().print_help(sys.stderr)
        return 2
    try:
        if given[0] not in COMMANDS:
            raise UnknownName("command", given[0], COMMANDS)
        module = importlib.import_module(f"harness.cli.{given[0].replace('-', '_')}")
        code: int = module.main(given[1:])
    except Unavailable as error:
        print(f"not run: {error}", file=sys.stderr)
        return 3
    except (HarnessError, OSError, UnicodeDecodeError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return code


def _overview() -> argparse.ArgumentParser:
    width = max(map(len, COMMANDS))
    lines = [f"  {name:<{width}}  {meaning}" for name, meaning in COMMANDS.items()]
    return argparse.ArgumentParser(
        prog="python -m harness",
        usage="python -m harness COMMAND [-h] ...",
        description="commands:\n" + "\n".join(lines),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


if __name__ == "__main__":
    sys.exit(main())
