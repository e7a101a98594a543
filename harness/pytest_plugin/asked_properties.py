"""Which properties a command line asks for: `--property NAME`, and names of properties in `-k`."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

from harness.errors import UnknownName, UsageError
from harness.pytest_plugin.invocation import SUITE


def require_known(asked: Iterable[str], known: Collection[str]) -> None:
    """Raise UnknownName for the first name that is no property."""
    for name in asked:
        if name not in known:
            raise UnknownName("property", name, known)


def by_tests(keyword: str, known: Iterable[str]) -> str:
    """An expression of `-k` in which names of properties, as tables print them, are parts of the names of tests.

    >>> by_tests("forward-parity and not torch-native", ["parity", "forward-parity"])
    'forward_parity and not torch-native'
    """
    names = sorted((name for name in known if "-" in name), key=len, reverse=True)
    if not names:
        return keyword
    whole = rf"(?<![\w-])({'|'.join(map(re.escape, names))})(?![\w-])"
    return re.sub(whole, lambda found: found[0].replace("-", "_"), keyword)


def refuse_files(arguments: Sequence[str], operators: Iterable[str]) -> None:
    """Raise UsageError if `judge` was given a file without an option: pytest would run it beside the whole suite."""
    for text in arguments:
        path = Path(text.partition("::")[0])
        if path.resolve().is_relative_to(SUITE):
            continue
        functions = _functions(path)
        name = functions[0] if functions else "FUNCTION"
        there = f"; its functions: {', '.join(functions)}" if functions else ""
        example = f"--candidate OPERATOR={text}:{name}" if path.suffix == ".py" else "--operator or --backend"
        raise UsageError(
            f"judge was given {text!r}, but takes options only: write {example}{there}; "
            f"operators: {', '.join(sorted(operators))}"
        )


def _functions(path: Path) -> list[str]:
    """The public functions that a Python file defines. It is not imported."""
    try:
        found = ast.parse(path.read_bytes()).body
    except (OSError, SyntaxError, ValueError):
        return []
    return [part.name for part in found if isinstance(part, ast.FunctionDef) and not part.name.startswith("_")]
