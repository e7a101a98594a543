"""The plan of a run and its shards, as used by `--shard`, `--resume` and `merge`.

The shard of a cell depends on its name alone, so that machines can divide the cells without communication. Two runs
have the same plan if they selected the same slots, properties and candidates and have the same suite; only reports of
such runs can be parts of one run.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from harness.errors import UsageError

_ROOT = Path(__file__).parents[2]
#: Packages of the suite: the harness, the contracts and the implementations.
_PACKAGES = ("spec", "backends", "harness")
_NOT_SOURCES = frozenset({".pyc", ".pyo", ".so", ".o"})


@dataclass(frozen=True)
class Shard:
    """Part `number` of `count`, counted from 1."""

    number: int = 1
    count: int = 1

    @classmethod
    def parse(cls, text: str) -> Shard:
        """Read `2/5`. Raises UsageError."""
        number, slash, count = text.partition("/")
        if not (slash and number.isascii() and number.isdigit() and count.isascii() and count.isdigit()):
            raise UsageError(f"--shard was {text!r}, but should be K/N, such as 2/5 for the second of five")
        if len(count) > 6 or not 1 <= int(number) <= int(count):
            raise UsageError(f"--shard was {text!r}, but should be K/N with K from 1 to N, and N below a million")
        return cls(int(number), int(count))

    def holds(self, name: str) -> bool:
        """Whether the test of that name, such as `test_sizes[lltm-aten-cpp-cpu-float32]`, is in this part."""
        digest = hashlib.sha256(name.encode()).digest()
        return int.from_bytes(digest[:8], "big") % self.count == self.number - 1


#: The only part of a run that is not divided.
UNDIVIDED = Shard()


@dataclass(frozen=True)
class RunPlan:
    """The plan of a run, as a report records it.

    `digest` identifies the selection, `sources` the suite's files. Of the `shards` parts, `begun` lists those that may
    have cells, and `finished` those whose cells are all there. The begun parts have `asked` cells in total.
    """

    digest: str
    sources: str
    shards: int = 1
    begun: tuple[int, ...] = (1,)
    finished: tuple[int, ...] = ()
    asked: int = 0

    @classmethod
    def of(cls, record: dict[str, Any]) -> RunPlan:
        """From the document of a valid report."""
        begun, finished = (tuple(sorted({int(k) for k in record[name]})) for name in ("begun", "finished"))
        return cls(record["digest"], record["sources"], int(record["shards"]), begun, finished, int(record["asked"]))

    @property
    def missing(self) -> tuple[int, ...]:
        """The shards that are not finished."""
        return tuple(number for number in range(1, self.shards + 1) if number not in self.finished)

    def in_words(self) -> str:
        """`shard 2 of 5`, or nothing where there is one part."""
        if self.shards == 1:
            return ""
        return f"shard{'s' if len(self.begun) > 1 else ''} {numbers(self.begun)} of {self.shards}"


def numbers(found: Iterable[int]) -> str:
    """`1, 3, 4`."""
    return ", ".join(map(str, found))


def digest_of(parts: Iterable[str]) -> str:
    """Digest of a sequence of texts."""
    return hashlib.sha256("\0".join(parts).encode("utf-8", "replace")).hexdigest()[:16]


@cache
def sources() -> str:
    """Digest of the suite's own files, whether or not they are in a repository; as they were at the first call."""
    return digest_of_files([_ROOT / name for name in _PACKAGES])


def digest_of_files(roots: Sequence[Path]) -> str:
    """Digest of the contents of files and folders, by names that are the same on every machine."""
    digest = hashlib.sha256()
    for root in roots:
        files = sorted(root.rglob("*")) if root.is_dir() else [root]
        for file in files:
            if file.is_file() and file.suffix not in _NOT_SOURCES and "__pycache__" not in file.parts:
                name = file.relative_to(root.parent).as_posix()
                digest.update(name.encode("utf-8", "replace") + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()[:16]
