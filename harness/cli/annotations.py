"""`python -m harness annotations`: the failures of a report as annotations of GitHub Actions."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from harness.cli import parsing, reports
from harness.cli.main import COMMANDS
from harness.rendering.annotations import SourcePlace, commands
from harness.report.report import Report


def main(arguments: Sequence[str]) -> int:
    """Exit code 0 whatever the verdicts are."""
    parser = parsing.parser("annotations", COMMANDS["annotations"])
    parsing.add_reports(parser)
    parser.add_argument(
        "--backend-path", type=Path, action="append", default=[], metavar="DIR", help="a backend's folder (repeatable)"
    )
    parser.add_argument(
        "--root", type=Path, default=Path(), metavar="DIR", help="the repository: names of files are relative to it"
    )
    parsing.add_output(parser, "instead of standard output")
    given = parser.parse_args(arguments)
    report = reports.read(given.reports)
    return reports.deliver(commands(report, _places(report, given.backend_path, given.root)), given.output)


def _places(report: Report, backend_paths: Sequence[Path], root: Path) -> dict[tuple[str, str], SourcePlace]:
    """Where each candidate is defined, and the file of each operator of a backend in these folders."""
    found = {}
    candidates = report.environment.get("candidates")
    for entry in candidates.values() if isinstance(candidates, dict) else ():
        operator, _, place = str((entry or {}).get("source")).partition("=")
        where, _, function = place.rpartition(":")
        if where.endswith(".py"):
            found[operator, function] = SourcePlace(_relative(Path(where), root), _line(Path(where), function))
    for operator, backend in {(cell.operator, cell.backend) for cell in report.cells}:
        for folder in (path for base in backend_paths for path in (base, *base.glob("*/"))):
            file = folder / f"{operator}.py"
            if folder.resolve().name.replace("_", "-") == backend and file.is_file():
                found[operator, backend] = SourcePlace(_relative(file, root), 1)
    return found


def _line(file: Path, function: str) -> int:
    """The line on which the function is defined, or that of the syntax error; 1 if it is made in another way."""
    with suppress(OSError, ValueError, RecursionError, MemoryError):
        try:
            body = ast.parse(file.read_bytes()).body
        except SyntaxError as error:
            return error.lineno or 1
        for node in reversed(body):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and node.name == function:
                return node.lineno
            if isinstance(node, ast.Assign) and function in {x.id for x in node.targets if isinstance(x, ast.Name)}:
                return node.lineno
    return 1


def _relative(file: Path, root: Path) -> str:
    file, root = file.resolve(), root.resolve()
    return str(file.relative_to(root)) if file.is_relative_to(root) else str(file)
