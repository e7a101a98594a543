"""The results of a fleet, as a SQLite file: one row for each candidate, with its report.

Each change is one transaction, so a fleet that is killed leaves every row either as it was or complete.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from harness.errors import UsageError
from harness.fleet.item import Item
from harness.fleet.outcome import CandidateResult

#: Version of the tables.
SCHEMA = 1
QUEUED, RUNNING, DONE = STATES = ("queued", "running", "done")
_TABLES = """
create table meta (name text primary key, value text not null) without rowid;
create table candidates (
    id text primary key,
    number integer not null,   -- its place in the input
    digest text not null,      -- of all that its verdict depends on
    item text not null,        -- the candidate as JSON
    state text not null check (state in ('queued', 'running', 'done')),
    worker text, started real, -- where it runs or ran, and since when (seconds since 1970)
    "right" integer, verdict text, score real, sentence text, exit_code integer, attempts integer,
    seconds real, cpu_seconds real, report text, output text
);
create index candidates_state on candidates (state);
"""
_RESULT = [field.name for field in fields(CandidateResult)]
_COLUMNS = ", ".join(f'"{name}"' for name in _RESULT)


class Store:
    """One file of results, used by one fleet at a time."""

    def __init__(self, path: Path, options: Mapping[str, Any]) -> None:
        """Open or make the file. Raises UsageError if another fleet uses it, if it is something else, or if its
        candidates were judged with other `options`."""
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        self._lock = FileLock(f"{path}.lock")
        try:
            self._lock.acquire(timeout=0)
        except Timeout:
            raise UsageError(f"{path} is in use by another fleet: wait for its end, or name another file") from None
        try:
            self._data = connection(path)
            self._prepare(json.dumps(options, sort_keys=True))
        except BaseException:
            self._lock.release()
            raise

    def close(self) -> None:
        """Close the file; what was not finished is queued for the next fleet."""
        with self._data:
            self._data.execute("update candidates set state = 'queued' where state = 'running'")
        self._data.close()
        self._lock.release()
        with suppress(OSError):
            Path(f"{self.path}.lock").unlink()

    def _prepare(self, options: str) -> None:
        with self._data:
            names = {row[0] for row in self._data.execute("select name from sqlite_master where type = 'table'")}
            if not names:
                for statement in _TABLES.split(";\n"):
                    self._data.execute(statement)
                facts = {"schema": str(SCHEMA), "options": options}
                self._data.executemany("insert into meta values (?, ?)", facts.items())
            elif not {"meta", "candidates"} <= names:
                raise UsageError(f"{self.path} is a database of something else; name another file")
            known = dict(self._data.execute("select name, value from meta"))
            if known.get("schema") != str(SCHEMA):
                raise UsageError(f"{self.path} has schema {known.get('schema')}, but should have {SCHEMA}")
            done = self._data.execute("select count(*) from candidates where state = 'done'").fetchone()[0]
            if not done:
                self._data.execute("update meta set value = ? where name = 'options'", (options,))
            elif known["options"] != options:
                raise UsageError(
                    f"the candidates of {self.path} were judged with {known['options']}, and not with {options}; "
                    "give the same options, or name another file"
                )
            # The fleet that ran these has died.
            self._data.execute("update candidates set state = 'queued' where state = 'running'")

    def begin(self, items: Sequence[Item]) -> list[Item]:
        """Queue what is new or has changed; returns the items that are to be judged, in order."""
        done = dict(self._data.execute("select id, digest from candidates where state = 'done'"))
        left = []
        with self._data:
            for number, item in enumerate(items):
                digest = item.digest
                if done.get(item.id) == digest:
                    continue
                left.append(item)
                self._data.execute(
                    "insert or replace into candidates (id, number, digest, item, state) values (?, ?, ?, ?, 'queued')",
                    (item.id, number, digest, json.dumps(asdict(item))),
                )
        return left

    def started(self, id: str, worker: str) -> None:
        """A worker has begun to judge this candidate."""
        self._change(id, state=RUNNING, worker=worker, started=time.time())

    def finished(self, result: CandidateResult) -> None:
        """The verdict of a candidate."""
        self._change(state=DONE, **asdict(result))

    def forget(self, ids: Sequence[str]) -> None:
        """Queue these again."""
        with self._data:
            self._data.executemany("update candidates set state = 'queued' where id = ?", [(id,) for id in ids])

    def kept(self, result: CandidateResult) -> None:
        """It is there already."""

    def lost(self, id: str, worker: str) -> None:
        """It stays `running`: it is judged once more at once."""

    def tick(self) -> None:
        """Nothing is to be written."""

    def _change(self, id: str, **values: Any) -> None:
        changes = ", ".join(f'"{name}" = ?' for name in values)
        # What a library prints may hold what no database can: half a surrogate pair.
        cells = [
            value.encode(errors="replace").decode() if isinstance(value, str) else value for value in values.values()
        ]
        with self._data:
            self._data.execute(f"update candidates set {changes} where id = ?", (*cells, id))

    def results(self) -> Iterator[CandidateResult]:
        """Those that are there, in the order of the input."""
        return results(self._data)


def connection(path: Path) -> sqlite3.Connection:
    """Raises UsageError if the file is no database."""
    try:
        found = sqlite3.connect(path)
        found.execute("pragma journal_mode = wal")
        found.execute("pragma synchronous = normal")
        return found
    except sqlite3.DatabaseError as error:
        raise UsageError(f"{path} is no SQLite file that can be opened ({error}); name another") from None


def results(data: sqlite3.Connection) -> Iterator[CandidateResult]:
    """The results in a database, in the order of the input."""
    rows = data.execute(f"select {_COLUMNS} from candidates where state = 'done' order by number")
    for row in rows:
        values = dict(zip(_RESULT, row, strict=True))
        yield CandidateResult(**{**values, "right": bool(values["right"])})
