"""What the parsers of several commands share."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path

DEFAULT_REPORT = Path("reports/conformance.json")


def parser(command: str, meaning: str) -> argparse.ArgumentParser:
    """The parser of `python -m harness COMMAND`."""
    return argparse.ArgumentParser(prog=f"python -m harness {command}", description=meaning)


def add_reports(made: argparse.ArgumentParser) -> None:
    """Any number of report files; without one, the report that a run writes by default."""
    made.add_argument("reports", type=Path, nargs="*", default=[DEFAULT_REPORT], metavar="REPORT")


def add_output(made: argparse.ArgumentParser, meaning: str, default: Path | None = None) -> None:
    """`-o FILE`."""
    made.add_argument("-o", "--output", type=Path, default=default, metavar="FILE", help=meaning)


def say(text: Callable[[argparse.Namespace], str], made: argparse.ArgumentParser, arguments: Sequence[str]) -> int:
    """Parse, and print what `text` makes of it."""
    print(text(made.parse_args(arguments)))
    return 0
