"""The code of an implementation, in the tree and at a commit: without comments, docstrings and white space.

Its files are the backend's file for the operator, the modules of `backends` that it imports, the sources that it
compiles and the headers that those include. Left out is what computes nothing: how backends describe themselves.
"""

from __future__ import annotations

import ast
import io
import re
import subprocess
import tarfile
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from backends.base import CompiledOperator
from harness import discovery
from harness.errors import UsageError
from harness.judging.constants import C_INCLUDE
from tools.scoreboard import ROOT

LEDGER = Path(__file__).with_name("same.toml")
#: How backends describe themselves, and which devices there are.
_DESCRIPTIONS = ("backends/base.py", "backends/devices.py")
#: A directive of the preprocessor to its end, a string, a character, a comment, a name or number, any other character.
_TOKEN = re.compile(
    r"""(?P<directive>^[ \t]*\#(?:\\\n|[^\n])*) | (?P<text>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])')
    | (?P<comment>//[^\n]*|/\*.*?\*/) | (?P<word>\w+) | (?P<other>\S)""",
    re.VERBOSE | re.MULTILINE | re.DOTALL,
)


@cache
def changed(backend: str, operator: str, commit: str) -> tuple[str, ...]:
    """The files of the implementation whose code at that commit was another than in the tree, or that it lacked.

    Raises UsageError if git does not have the commit.
    """
    then = files_at(commit)
    return tuple(name for name in files(backend, operator) if not _is_same(name, then))


@cache
def files(backend: str, operator: str) -> tuple[str, ...]:
    """What the implementation is made of, relative to the repository; empty if the backend has no such operator."""
    found = discovery.backend(backend)
    own = Path(found.package.__path__[0]).relative_to(ROOT) / f"{operator}.py"
    if not (ROOT / own).is_file():
        return ()
    names: set[str] = set()
    _add_modules(own, names)
    implementation = found.implementation(operator)
    if isinstance(implementation, CompiledOperator):
        for source in implementation.sources:
            _add_includes(source, implementation.include_dirs, names)
    return tuple(sorted(names))


@cache
def normal(name: str, text: str) -> str:
    """The code in a text: equal for two texts that differ in comments, docstrings and white space alone."""
    return _normal_python(text) if name.endswith(".py") else _normal_cpp(text)


def _normal_python(text: str) -> str:
    module = ast.parse(text)
    for node in ast.walk(module):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node) is not None:
            node.body = node.body[1:]
    return ast.dump(module)


def _normal_cpp(text: str) -> str:
    tokens = []
    for token in _TOKEN.finditer(text):
        if token.lastgroup == "directive":
            without = re.sub(r"//[^\n]*|/\*.*?\*/|\\\n", " ", token[0])
            tokens.append(" ".join(without.split()))
        elif token.lastgroup != "comment":
            tokens.append(token[0])
    return "\n".join(tokens)


def _is_same(name: str, then: Mapping[str, str]) -> bool:
    now = normal(name, _text(name))
    if name in then and normal(name, then[name]) == now:
        return True
    return any(
        entry.was in then and normal(name, then[entry.was]) == entry.code_before() and now == entry.code_after()
        for entry in ledger()
        if entry.file == name
    )


@dataclass(frozen=True)
class Same:
    """An entry of the ledger: a change of a file between two commits that changes no result. `was`: its old name."""

    file: str
    before: str
    after: str
    reason: str
    was: str

    def code_before(self) -> str:
        """The file's code for which the entry stands."""
        return normal(self.file, files_at(self.before)[self.was])

    def code_after(self) -> str:
        """The code that it must have in the tree."""
        return normal(self.file, files_at(self.after)[self.file])


@cache
def ledger() -> tuple[Same, ...]:
    """All entries; a file that has moved has its old name in `was`."""
    entries = tomllib.loads(LEDGER.read_text(encoding="utf-8")).get("same", [])
    return tuple(Same(**{"was": entry["file"], **entry}) for entry in entries)


@cache
def files_at(commit: str) -> dict[str, str]:
    """The texts below `backends` at a commit, by their names."""
    done = subprocess.run(
        ["git", "-C", str(ROOT), "archive", "--format=tar", commit, "backends"], capture_output=True, check=False
    )
    if done.returncode != 0:
        raise UsageError(
            f"the commit of a record was {commit!r}, but should be one that git has: `git fetch --unshallow` brings "
            f"the whole history ({done.stderr.decode(errors='replace').strip()})"
        )
    found = {}
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
        for member in archive:
            file = archive.extractfile(member)
            if file is not None:
                found[member.name] = file.read().decode(errors="replace")
    return found


@cache
def _text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def _add_modules(file: Path, names: set[str]) -> None:
    """A module, and those of `backends` that it imports, wherever it does."""
    name = file.as_posix()
    if name in names or name in _DESCRIPTIONS or not (ROOT / file).is_file():
        return
    if file.name != "__init__.py":  # a package's says what the backend is
        names.add(name)
    for node in ast.walk(ast.parse(_text(name))):
        modules = []
        if isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            modules = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        for module in modules:
            if module.startswith("backends."):
                _add_modules(Path(*module.split(".")).with_suffix(".py"), names)


def _add_includes(file: Path, folders: tuple[Path, ...], names: set[str]) -> None:
    """A source, and the headers in those folders that it includes."""
    name = file.relative_to(ROOT).as_posix()
    if name in names:
        return
    names.add(name)
    for header in C_INCLUDE.findall(_text(name)):
        there = [folder / header for folder in (file.parent, *folders) if (folder / header).is_file()]
        if there:
            _add_includes(there[0], folders, names)
