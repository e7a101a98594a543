"""Which statements of Python files ran in no call, from the branches that a `BranchWatch` reports.

Only functions that some call entered count, and those of the same files that an entered one names. So neither what runs
at import counts, nor the functions of other operators. Decorated functions that nothing entered are left out: a
compiler may run them, as Triton's does.

Some statements are *excused*, because they are for circumstances that the calls do not make: they raise, or they depend
on a device, a dtype, a type checker or a tracing compiler.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType

from harness.executing.watching import Branches

#: A condition with one of these words is about a circumstance that the calls do not make.
_CIRCUMSTANCE = re.compile(
    r"TYPE_CHECKING|cuda|device|dtype|float64|float16|is_available|is_meta|compiling|tracing|scripting|autocast|functorch"
)
#: Decorators of functions that run as Python.
_PLAIN = frozenset({"staticmethod", "classmethod", "property"})

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True)
class Line:
    """The first line of a statement; with `always`, that of a condition that was true in every call."""

    file: str
    line: int
    text: str
    always: bool = False

    def in_words(self) -> str:
        """`line 41 of kernel.py: return 2 * y`."""
        return f"line {self.line} of {self.file}: {self.text}"


@dataclass
class _Part:
    """A function: its own statements, without those of functions inside, and the names that it uses."""

    name: str
    is_plain: bool
    lines: set[int] = field(default_factory=set)
    names: set[str] = field(default_factory=set)


class _Source:
    """A file: its functions, which statement each line belongs to, and what has run. Statements are first lines."""

    def __init__(self, path: Path) -> None:
        """Raises OSError, or SyntaxError or ValueError for a file that is no Python."""
        text = path.read_text()
        self.name, self._text = path.name, text.splitlines()
        tree = ast.parse(text)
        self._executable = set(_lines_of(compile(tree, str(path), "exec")))
        self._first: dict[int, int] = {}
        self.parts: list[_Part] = []
        self.excused: set[int] = set()
        #: By the line of an `if` without `else`: that of its body.
        self._conditions: dict[int, int] = {}
        self._read(tree.body, None)
        self.own = {line for part in self.parts for line in part.lines}
        self.branches: set[tuple[int, int]] = set()
        self.ran: set[int] = set()

    def _read(self, body: Sequence[ast.stmt], part: _Part | None) -> None:
        for statement in body:
            self._read_one(statement, part)

    def _read_one(self, statement: ast.stmt, part: _Part | None) -> None:
        inner = [block for block in _blocks(statement) if block]
        last = min(block[0].lineno for block in inner) - 1 if inner else statement.end_lineno or statement.lineno
        lines = range(min([statement.lineno, *_decorators(statement)]), max(last, statement.lineno) + 1)
        if part is not None and self._executable & set(lines):
            part.lines.add(statement.lineno)
            self._first.update(dict.fromkeys(lines, statement.lineno))
            part.names |= set(_names(statement, inner))
        if isinstance(statement, ast.Raise):
            self.excused.add(statement.lineno)
        if isinstance(statement, ast.If):
            self._read_condition(statement)
        if isinstance(statement, _FUNCTIONS):
            plain = all(isinstance(name, ast.Name) and name.id in _PLAIN for name in statement.decorator_list)
            part = _Part(statement.name, plain)
            self.parts.append(part)
        for block in inner:
            self._read(block, part)

    def _read_condition(self, statement: ast.If) -> None:
        if not statement.orelse and statement.body[0].lineno != statement.lineno:
            self._conditions[statement.lineno] = statement.body[0].lineno
        if _CIRCUMSTANCE.search(ast.unparse(statement.test)):
            excused: list[Sequence[ast.stmt]] = [statement.body, statement.orelse]
            self._conditions.pop(statement.lineno, None)
        else:
            # A block of simple statements that ends with `raise` makes the message first.
            blocks = [statement.body, statement.orelse]
            excused = [block for block in blocks if block and isinstance(block[-1], ast.Raise) and not _nested(block)]
        inside = (node for block in excused for top in block for node in ast.walk(top))
        self.excused |= {node.lineno for node in inside if isinstance(node, ast.stmt)}

    def add(self, branches: Iterable[tuple[int, int]]) -> list[int]:
        """Take note of branches; the statements of functions that are new by them, or at the end of a new branch."""
        pairs = {(self._first.get(one, one), self._first.get(other, other)) for one, other in branches}
        fresh = {(one, other) for one, other in pairs if one != other} - self.branches
        lines = {line for pair in pairs for line in pair if line > 0} - self.ran
        self.branches |= fresh
        self.ran |= lines
        ends = {other if other > 0 else one for one, other in fresh}
        return sorted(lines & self.own or ends & self.own)

    def always(self) -> Iterator[int]:
        """Conditions without an `else` that were never false."""
        for line, body in sorted(self._conditions.items()):
            after = {other for one, other in self.branches if one == line}
            if after == {body}:
                yield line

    def line(self, number: int, always: bool = False) -> Line:
        return Line(self.name, number, self._text[number - 1].strip(), always)


class Reached:
    """What has run of some Python files so far."""

    def __init__(self, files: Iterable[Path]) -> None:
        """A file that cannot be read, or is no Python, is left out."""
        self._sources: dict[str, _Source] = {}
        for path in files:
            with suppress(OSError, SyntaxError, ValueError, RecursionError, MemoryError):
                self._sources[str(path)] = _Source(path)

    @property
    def files(self) -> list[str]:
        """The files that were understood."""
        return list(self._sources)

    def add(self, news: Branches) -> list[Line]:
        """Take note of branches; the lines of functions that are new by them."""
        return [source.line(n) for file, source in self._sources.items() for n in source.add(news.get(file, ()))]

    def unreached(self) -> list[Line]:
        """The statements that no call reached, and the conditions that were always true; without what is excused."""
        every = [(source, part) for source in self._sources.values() for part in source.parts]
        entered = [(source, part) for source, part in every if part.lines & source.ran]
        named = {name for _, part in entered for name in part.names}
        more = [(source, part) for source, part in every if part.is_plain and part.name in named]
        found: dict[Line, None] = {}
        for source in self._sources.values():
            own = {line for where, part in (*entered, *more) if where is source for line in part.lines}
            lines = [source.line(number) for number in own - source.ran - source.excused]
            lines += [source.line(number, always=True) for number in source.always() if number in own & source.ran]
            found.update(dict.fromkeys(sorted(lines, key=lambda line: line.line)))
        return list(found)

    @property
    def count(self) -> int:
        """How many statements of functions ran."""
        return sum(len(source.ran & source.own) for source in self._sources.values())


def _lines_of(code: CodeType) -> Iterator[int]:
    yield from (line for _, _, line in code.co_lines() if line is not None)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _lines_of(constant)


def _blocks(statement: ast.stmt) -> Iterator[list[ast.stmt]]:
    for name in ("body", "orelse", "finalbody"):
        yield getattr(statement, name, [])
    for part in (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
        yield part.body


def _decorators(statement: ast.stmt) -> list[int]:
    return [node.lineno for node in getattr(statement, "decorator_list", ())]


def _names(statement: ast.stmt, inner: Sequence[Sequence[ast.stmt]]) -> Iterator[str]:
    """Names in a statement, without those in its blocks."""
    below = {id(node) for block in inner for top in block for node in ast.walk(top)}
    for node in ast.walk(statement):
        if id(node) in below:
            continue
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr


def _nested(block: Sequence[ast.stmt]) -> bool:
    return any(inner for statement in block for inner in _blocks(statement))
