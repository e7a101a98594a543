"""The result of a run: scores, survivors and the ledger that explains them, as tables and as JSON."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from harness import discovery
from harness.properties import all_properties
from harness.report.report import jsonable
from harness.running import environment
from tools.mutation.judging import EXPLAINED, HARNESS_FAILED, KILLED, STILLBORN, SURVIVED, Check, Outcome
from tools.mutation.operators import Mutant
from tools.mutation.sources import SOURCES, Source

LEDGER = Path(__file__).with_name("equivalents.toml")
#: The share of non-equivalent mutants that the suite must notice.
REQUIRED = 0.98


#: Kinds of entries in the ledger: no test can notice the mutant, or none on a machine without a GPU.
EQUIVALENT, GPU_ONLY = KINDS = ("equivalent", "gpu-only")
#: What a mutant of the second kind is where a record says that a GPU has noticed it.
ON_GPU = "on-gpu"


@dataclass(frozen=True)
class Entry:
    """An entry of the ledger: a mutant that is not noticed here, and why.

    On a GPU, the property `seen_by` asks about it: of the backend `host` where the hosts of its file do not reach it,
    of the first of these otherwise.
    """

    file: str
    before: str
    after: str
    reason: str
    seen_by: str = ""
    host: str = ""

    @property
    def key(self) -> tuple[str, str, str]:
        return self.file, self.before, self.after

    @property
    def kind(self) -> str:
        return GPU_ONLY if self.seen_by else EQUIVALENT


def read_ledger(path: Path = LEDGER) -> list[Entry]:
    """Raises ValueError for an entry without a reason or in the wrong section, and for two entries on one mutant."""
    sections = tomllib.loads(path.read_text())
    if unknown := set(sections) - set(KINDS):
        raise ValueError(f"{path}: unknown section {', '.join(unknown)}, but should be {' or '.join(KINDS)}")
    entries = []
    for kind, rows in sections.items():
        for row in rows:
            entry = Entry(**row)
            if len(entry.reason.split()) < 4:
                raise ValueError(f"{path}: the entry for {entry.file}, {entry.after!r}, should give a reason")
            if entry.kind != kind or entry.seen_by not in ("", *all_properties()):
                raise ValueError(
                    f"{path}: the entry for {entry.file}, {entry.after!r}, has seen_by = {entry.seen_by!r}, but should "
                    f"name a property in {GPU_ONLY} and nothing in {EQUIVALENT}"
                )
            if entry.host and (kind != GPU_ONLY or entry.host not in discovery.all_backends()):
                raise ValueError(
                    f"{path}: the entry for {entry.file}, {entry.after!r}, has host = {entry.host!r}, but should name "
                    f"a backend in {GPU_ONLY} and nothing in {EQUIVALENT}"
                )
            entries.append(entry)
    if len({entry.key for entry in entries}) != len(entries):
        raise ValueError(f"{path}: two entries are about one mutant")
    return entries


@dataclass
class Case:
    """One mutant and its state in the run."""

    source: Source
    mutant: Mutant
    hosts: list[str]
    outcome: Outcome | None = None
    host: str = ""
    entry: Entry | None = None
    #: What the record of a GPU says of it, if that has noticed it.
    on_gpu: str = ""

    @property
    def key(self) -> tuple[str, str, str]:
        return self.mutant.key

    @property
    def explained(self) -> str:
        """Equivalent, noticed on a GPU, or not noticed but on a GPU; empty without an entry in the ledger."""
        if self.entry is None:
            return ""
        return ON_GPU if self.entry.kind == GPU_ONLY and self.on_gpu else self.entry.kind


@dataclass
class Account:
    """All results of a run."""

    cases: list[Case]
    enumerated: dict[str, int]
    checks: list[Check] = field(default_factory=list)
    honest: list[Outcome] = field(default_factory=list)
    faults: list[Outcome] = field(default_factory=list)
    controls: list[tuple[Outcome, list[dict[str, Any]]]] = field(default_factory=list)
    stale: list[str] = field(default_factory=list)
    seconds: float = 0.0
    seeds: int = 1

    def count(self, status: str, group: str | None = None) -> int:
        return sum(
            case.outcome is not None and case.outcome.status == status and group in (None, case.source.group)
            for case in self.cases
        )

    def explained(self, kind: str, group: str | None = None) -> list[Case]:
        """The mutants that the ledger explains, whether they were judged and survived or were not judged."""
        return [case for case in self.cases if case.explained == kind and group in (None, case.source.group)]

    def follow_up(self, group: str | None = None) -> list[Case]:
        """Survivors that the ledger does not explain."""
        return [
            case
            for case in self.cases
            if case.outcome is not None
            and case.outcome.status == SURVIVED
            and case.entry is None
            and group in (None, case.source.group)
        ]

    def score(self, group: str | None = None) -> float:
        """killed / (killed + neither equivalent nor killed), here or on a GPU; 1 if there is nothing to notice."""
        killed = self.count(KILLED, group) + len(self.explained(ON_GPU, group))
        missed = len(self.follow_up(group)) + len(self.explained(GPU_ONLY, group))
        return killed / (killed + missed) if killed + missed else 1.0

    @property
    def rejected(self) -> list[Outcome]:
        """Right implementations that the suite rejected: controls, and unmutated backends built in the same way."""
        return [outcome for outcome in (*self.honest, *(one for one, _ in self.controls)) if outcome.status != SURVIVED]

    @property
    def complaints(self) -> list[str]:
        """The reasons why the run fails; empty if it does not."""
        found = [f"the ledger is stale: {line}" for line in self.stale]
        found += [
            f"{outcome.id} is right, but was rejected by {outcome.by}: {outcome.message}" for outcome in self.rejected
        ]
        found += [
            f"{outcome.id} was killed by {outcome.by} in {outcome.dtype} because {outcome.message}"
            for outcome in (*self.faults, *(case.outcome for case in self.cases if case.outcome is not None))
            if outcome.message.startswith(HARNESS_FAILED)
        ]
        if self.score() < REQUIRED:
            found.append(f"the score is {self.score():.1%}, but should be at least {REQUIRED:.0%}")
        return found


def explain(cases: Sequence[Case], ledger: Sequence[Entry]) -> None:
    """Mark each mutant of the ledger as explained: it need not be judged."""
    entries = {entry.key: entry for entry in ledger}
    for case in cases:
        if case.key in entries:
            case.entry = entries[case.key]
            case.outcome = Outcome(case.mutant.id, EXPLAINED, message=case.entry.reason)


def hold_against_ledger(account: Account, ledger: Sequence[Entry]) -> None:
    """Explain survivors by the ledger, and record its entries that are no longer true."""
    everything = {mutant.key for source in SOURCES for mutant in source.drawn(everything=True)[0]}
    for entry in ledger:
        if entry.key not in everything:
            account.stale.append(f"{entry.file} has no mutant {entry.after!r} any more")
        for case in account.cases:
            if case.key != entry.key or case.outcome is None:
                continue
            if case.outcome.status in (SURVIVED, EXPLAINED):
                case.entry = entry
            else:
                account.stale.append(
                    f"{case.mutant.id}, {entry.after!r}, is called {entry.kind}, but was {case.outcome.status} "
                    f"by {case.outcome.by}: {case.outcome.message}"
                )


# Output ---------------------------------------------------------------------------------------------------------------


def announce(console: Console, cases: Sequence[Case], enumerated: dict[str, int]) -> None:
    """Print how many mutants there are, and how many of them this run judges."""
    for file, count in enumerated.items():
        here = sum(case.mutant.file == file for case in cases)
        drawn_from = "all" if here == count else f"{here} drawn"
        console.print(f"{file}: {count} mutants, {drawn_from}", highlight=False)
    console.print(f"{len(cases)} of {sum(enumerated.values())} mutants; `--all` judges every one", highlight=False)


def order(checks: Iterable[Check]) -> str:
    return ", ".join(f"{check.property} {str(check.dtype).removeprefix('torch.')}" for check in checks)


def show(console: Console, account: Account) -> None:
    """Print every mutant with the property that kills it, the scores, the survivors, the zoo, and the complaints."""
    table = Table(title="Mutants", title_justify="left")
    for column in ("mutant", "difference", "noticed by", "s"):
        table.add_column(column, overflow="fold", justify="right" if column == "s" else "left")
    for case in account.cases:
        outcome = case.outcome
        assert outcome is not None
        by = f"{outcome.by} ({outcome.dtype})" if outcome.status == KILLED else outcome.status
        style = {KILLED: "", STILLBORN: "dim"}.get(outcome.status, "yellow" if case.entry else "bold red")
        by = case.explained or by
        table.add_row(case.mutant.id, escape(_short(case.mutant)), escape(by), f"{outcome.seconds:.1f}", style=style)
    console.print(table)
    _show_scores(console, account)
    survivors = [case for case in account.cases if case.entry is not None] + account.follow_up()
    if survivors:
        console.print("\n[bold]Survivors and explained mutants[/]")
    for case in survivors:
        console.print(
            f"  {case.mutant.id}\n    - {case.mutant.before}\n    + {case.mutant.after}", markup=False, highlight=False
        )
        entry = case.entry
        seen = f" ({entry.seen_by})" if entry and entry.seen_by else ""
        words = f"{case.explained}: {entry.reason}{seen}" if entry else "FOLLOW-UP"
        console.print(f"    {words}", markup=False, highlight=False)
    _show_zoo(console, account)
    for line in account.complaints:
        console.print(f"[bold red]✗[/] {escape(line)}", highlight=False, soft_wrap=True)
    console.print(
        f"{len(account.cases)} mutants, score {account.score():.1%}, {account.seconds:.0f} s", highlight=False
    )


SCORES = ("source", "of", "drawn", "killed", ON_GPU, *KINDS, "follow-up", "stillborn", "score")


def score_rows(account: Account) -> list[list[str]]:
    """A row for each backend, one for shared code, and one for all."""
    groups = list(dict.fromkeys(case.source.group for case in account.cases))
    rows = []
    for group in (*groups, None):
        files = {source.file for source in SOURCES if group in (None, source.group)}
        counts = [
            sum(count for file, count in account.enumerated.items() if file in files),
            sum(group in (None, case.source.group) for case in account.cases),
            account.count(KILLED, group),
            *(len(account.explained(kind, group)) for kind in (ON_GPU, *KINDS)),
            len(account.follow_up(group)),
            account.count(STILLBORN, group),
        ]
        rows.append([group or "all", *map(str, counts), f"{account.score(group):.1%}"])
    return rows


def _show_scores(console: Console, account: Account) -> None:
    table = Table(title="Scores: (killed + on-gpu) / (killed + on-gpu + gpu-only + follow-up)", title_justify="left")
    for column in SCORES:
        table.add_column(column, justify="left" if column == "source" else "right")
    *rows, last = score_rows(account)
    for row in rows:
        table.add_row(*row, end_section=row is rows[-1])
    table.add_row(*last)
    console.print(table)


def _show_zoo(console: Console, account: Account) -> None:
    if not account.faults:
        return
    table = Table(title="The zoo: faults", title_justify="left")
    for column in ("fault", "noticed by", "s"):
        table.add_column(column, justify="right" if column == "s" else "left")
    for outcome in account.faults:
        by = f"{outcome.by} ({outcome.dtype})" if outcome.status == KILLED else "nothing"
        table.add_row(outcome.id, by, f"{outcome.seconds:.1f}", style="" if outcome.status == KILLED else "bold red")
    console.print(table)
    noticed = sum(outcome.status == KILLED for outcome in account.faults)
    alarms = sum(len(cells) for _, cells in account.controls)
    console.print(f"faults noticed: {noticed} of {len(account.faults)}", highlight=False)
    console.print(
        f"controls: {alarms} false alarms in {len(account.controls)} controls, {account.seeds} seeds", highlight=False
    )
    for _, cells in account.controls:
        for cell in cells:
            console.print(f"  {cell['by']} in {cell['dtype']}: {cell['message']}", markup=False, highlight=False)


def _short(mutant: Mutant, context: int = 14) -> str:
    """The place where the lines differ: `item * width → item`."""
    before, after = mutant.before, mutant.after
    shorter = min(len(before), len(after))
    same = next((n for n in range(shorter) if before[n] != after[n]), shorter)
    tail = next((n for n in range(shorter - same) if before[-1 - n] != after[-1 - n]), shorter - same)
    start = max(same - context, 0)

    def cut(text: str) -> str:
        end = min(len(text) - tail + context, len(text))
        return f"{'…' if start else ''}{text[start:end]}{'…' if end < len(text) else ''}"

    return f"{cut(before)}  →  {cut(after)}"


def write(account: Account, path: Path) -> None:
    """Write the record: one JSON file with all the data that `show` prints."""
    mutants = []
    for case in account.cases:
        assert case.outcome is not None
        mutants.append(
            {
                **asdict(case.outcome),
                "file": case.mutant.file,
                "line": case.mutant.line,
                "operator": case.mutant.edit.operator,
                "before": case.mutant.before,
                "after": case.mutant.after,
                "host": case.host,
                "explained": case.explained,
                "on_gpu": case.on_gpu,
            }
        )
    record = {
        "schema": 1,
        "environment": environment.describe(),
        "seconds": account.seconds,
        "enumerated": account.enumerated,
        "hearings": [{"property": h.property, "dtype": str(h.dtype), "cost": h.cost} for h in account.checks],
        "score": account.score(),
        "scores": [SCORES, *score_rows(account)],
        "mutants": mutants,
        "unmutated": [asdict(outcome) for outcome in account.honest],
        "faults": [asdict(outcome) for outcome in account.faults],
        "controls": [{**asdict(outcome), "false_alarms": cells} for outcome, cells in account.controls],
        "complaints": account.complaints,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(jsonable(record), indent=1, allow_nan=False) + "\n")
