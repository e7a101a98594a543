"""The integers in an implementation's source: where a fast path begins, where a block ends.

Nobody can ask every size. But a threshold usually stands in the source as a literal: of Python, of C++ and CUDA, of a
kernel in a string. Sizes around these numbers are asked. The source is read as text and never run. It may hide its
numbers; then nothing is lost beside this.

Two integers are none of these. A floating number that is divided by one, as in 1.0 / 5040, makes a coefficient. And a
shift by k bits is taken for its 2^k.
"""

from __future__ import annotations

import ast
import operator as python_operator
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

#: Smallest and largest integer that is taken for a size. Smaller ones are asked anyway.
LEAST, MOST = 5, 100_000
#: Files and bytes that are read at most.
FILES, BYTES = 64, 2**20
#: Operations within each other that are computed.
_DEPTH = 30
#: Digits of a number that may be a size.
_DIGITS = 30
#: Folders above that of a file where its includes are looked for.
_ABOVE = 3

_C_FAMILY = (".c", ".cc", ".cpp", ".cu", ".cuh", ".h", ".hpp", ".hip")
#: One that does not end goes on to the end of the file: to look for an end from each beginning takes hours.
_C_COMMENT = re.compile(r"//[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
_C_INTEGER = re.compile(r"(?<![\w.'])(?<![\d.][eE][+-])(0[xX][0-9a-fA-F']+|\d[\d']*)(?:[uUlLzZ]*)(?![\w.])")
#: A shift, but not the configuration of a launch, `<<<64, 256>>>`.
_C_SHIFT = re.compile(r"(?:(?<!<)<<(?!<)|(?<!>)>>(?!>))=?\s*(\d+)\b(?!\.)")
_C_COEFFICIENT = re.compile(
    r"(?<![\w.])(?:\d+\.\d*(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+)[fFlL]?\s*/\s*\d+\b(?![.'])"
)
#: The name of a processor, of a file or of an option: source code in a string has spaces.
_C_WORD = re.compile(r'"[^"\s;{}]*"')
_C_PRODUCT = re.compile(r"\b(\d+)\s*\*\s*(\d+)\b")
#: What a file of the C family includes by a name in quotes.
C_INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)
#: A string in Python that holds one of these is source code of a kernel.
_KERNEL = re.compile(r"__global__|\btemplate\s*<|\bat::Tensor\b|\btorch::Tensor\b|\bextern\s+\"C\"|\bvoid\s+\w+\s*\(")

_FOLDED: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: python_operator.add,
    ast.Sub: python_operator.sub,
    ast.Mult: python_operator.mul,
    ast.FloorDiv: python_operator.floordiv,
    ast.LShift: lambda x, y: x << y if 0 <= y < 64 else 0,
    ast.Pow: lambda x, y: x**y if abs(x) <= MOST and 0 <= y < 64 else 0,
}


def constants_of(files: Iterable[Path]) -> list[int]:
    """The integers of these files and of those that they name, ascending: what may be a size."""
    found: set[int] = set()
    for path in reached(files):
        text = _read(path)
        found.update(_of_c(text) if path.suffix in _C_FAMILY else _of_python(text))
    return sorted(number for number in found if LEAST <= number <= MOST)


def reached(files: Iterable[Path]) -> list[Path]:
    """The files, and those beside them that they import, include or name in a string."""
    waiting, seen = [path.resolve() for path in files], dict[Path, None]()
    while waiting and len(seen) < FILES:
        path = waiting.pop(0)
        if path not in seen and path.is_file() and path.suffix in (".py", *_C_FAMILY):
            seen[path] = None
            waiting += _named(path)
    return list(seen)


def _read(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(BYTES).decode(errors="replace")
    except OSError:
        return ""


def _parsed(text: str) -> ast.AST:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ast.Module(body=[], type_ignores=[])


def _named(path: Path) -> Iterator[Path]:
    text, folder = _read(path), path.parent
    if path.suffix in _C_FAMILY:
        # An include path is often a folder above.
        places = [folder, *folder.parents[:_ABOVE]]
        yield from ((place / name).resolve() for name in C_INCLUDE.findall(text) for place in places)
        return
    for node in ast.walk(_parsed(text)):
        match node:
            case ast.ImportFrom(module=module, level=level):
                root = folder.joinpath(*[".."] * max(level - 1, 0), *(module or "").split("."))
                yield root.with_suffix(".py").resolve()
                yield from ((root / f"{alias.name}.py").resolve() for alias in node.names)
            case ast.Import(names=names):
                yield from (folder.joinpath(*alias.name.split(".")).with_suffix(".py").resolve() for alias in names)
            case ast.Constant(value=str() as name) if len(name) < 256 and Path(name).suffix in (".py", *_C_FAMILY):
                yield (folder / name).resolve()


def _of_python(text: str) -> Iterator[int]:
    no_sizes: set[ast.AST] = set()
    for node in ast.walk(_parsed(text)):  # an operation comes before its operands
        match node:
            case ast.Constant(value=str() as words):
                if _KERNEL.search(words):
                    yield from _of_c(words)
                continue
            case ast.BinOp(op=ast.LShift() | ast.RShift(), right=ast.Constant(value=int() as bits) as right):
                no_sizes.add(right)
                yield 1 << bits if 0 <= bits < 64 else 0
            case ast.BinOp(op=ast.Div(), left=ast.Constant(value=float()), right=right):
                no_sizes.add(right)
        if isinstance(node, ast.Constant | ast.BinOp) and node not in no_sizes:
            value = _folded(node)
            if value is not None:
                yield abs(value)


def _folded(node: ast.AST, depth: int = _DEPTH) -> int | None:
    """The value of an integer expression of literals; None for anything else, and for a sum of very many terms."""
    if depth == 0:
        return None
    match node:
        case ast.Constant(value=bool()):
            return None
        case ast.Constant(value=int() as number):
            return number
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _FOLDED:
            one, other = _folded(left, depth - 1), _folded(right, depth - 1)
            if one is None or other is None or (other == 0 and isinstance(op, ast.FloorDiv)):
                return None
            return _FOLDED[type(op)](one, other)
    return None


def _of_c(text: str) -> Iterator[int]:
    text = _C_COEFFICIENT.sub(" ", _C_WORD.sub(" ", _C_COMMENT.sub(" ", text)))
    yield from (1 << int(shift) for shift in _C_SHIFT.findall(text) if len(shift) < 3 and int(shift) < 64)
    text = _C_SHIFT.sub(" ", text)
    plain = (digits.replace("'", "") for digits in _C_INTEGER.findall(text))
    yield from (int(digits, 0) for digits in plain if _is_number(digits))
    pairs = _C_PRODUCT.findall(text)
    yield from (int(one) * int(other) for one, other in pairs if max(len(one), len(other)) <= _DIGITS)


def _is_number(digits: str) -> bool:
    """Whether Python reads it as C does: not an octal number, and none of thousands of digits."""
    if len(digits) > _DIGITS:
        return False
    return digits[:2].lower() == "0x" or digits == "0" or not digits.startswith("0")
