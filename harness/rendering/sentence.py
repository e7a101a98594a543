"""The verdict as a person would say it: a sentence for an implementation, one for a report, and a few words.

What is wrong at a required level comes first, then what is right, then what was not judged. Failures above the required
level are no errors: they are what the function could support too. All texts are plain; who writes them into a page or a
document escapes them there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from harness.rendering import causes
from harness.report.cell import DECLARED, FAIL, NEEDLESS, NO_EVIDENCE, NOT_RUN, PASS, Cell
from harness.report.levels import (
    GRADIENTS,
    LEVELS,
    PRODUCTION,
    PYTORCH,
    SAFE,
    VALUES,
    counted,
    exit_reason,
    is_required,
)
from harness.report.report import Report
from harness.report.suite import Suite

#: Names in a sentence; of more than these the rest are counted.
_NAMED = 4
_LONGEST_REASON = 200
#: The property that fails in place of all others if a candidate cannot be imported.
_IMPORTS = "imports"
_PLAIN = {VALUES: "forward-parity", GRADIENTS: "vjp-parity"}
_SUBJECT = {
    VALUES: "values",
    GRADIENTS: "gradients",
    SAFE: "safety",
    PYTORCH: "level pytorch",
    PRODUCTION: "level production",
}
_QUESTION = {
    VALUES: "values are right",
    GRADIENTS: "gradients are right",
    SAFE: "it is safe",
    PYTORCH: "it holds at level pytorch",
    PRODUCTION: "it holds at level production",
}
_SHORT = {
    VALUES: "values wrong",
    GRADIENTS: "gradients wrong",
    SAFE: "not safe",
    PYTORCH: "pytorch fails",
    PRODUCTION: "production fails",
}


@dataclass(frozen=True)
class Implementation:
    """The cells of one operator in one backend, and what is required of them."""

    operator: str
    backend: str
    cells: tuple[Cell, ...]
    suite: Suite
    required: str
    #: The properties that a quick run left out; None if the run was not quick.
    left_out: tuple[str, ...] | None = None

    @cached_property
    def counted(self) -> list[tuple[str, str, Cell]]:
        """The cells at their levels: see `levels.counted`."""
        return list(counted(self.cells, self.suite))

    @cached_property
    def by_level(self) -> dict[str, dict[str, list[Cell]]]:
        """The tested cells by level and verdict."""
        found: dict[str, dict[str, list[Cell]]] = {level: {} for level in LEVELS}
        for level, verdict, cell in self.counted:
            if verdict != NOT_RUN:
                found[level].setdefault(verdict, []).append(cell)
        return found

    @property
    def is_judged(self) -> bool:
        """Whether any cell was tested and not only declared."""
        return any(verdict != DECLARED for found in self.by_level.values() for verdict in found)

    @cached_property
    def not_imported(self) -> list[Cell]:
        """The cell that says that the candidate cannot be imported; nothing else was asked of it."""
        return [cell for cell in self.cells if cell.property == _IMPORTS and cell.verdict == FAIL]

    @cached_property
    def wrong(self) -> dict[str, list[Cell]]:
        """The cells that failed at each required level and do not follow from a level before it."""
        where = causes.roots(self.cells, self.suite)
        found = {}
        for level in self._required:
            own = [cell for cell in self._of(level, FAIL) if not causes.follows(level, cell, where)]
            if own:
                found[level] = own
        return found

    @cached_property
    def right(self) -> list[str]:
        """The levels at which something passed and nothing failed or lacks evidence, whether required or not."""
        return [level for level in LEVELS if PASS in self.by_level[level] and not self._lacking(level)]

    @cached_property
    def needless(self) -> list[Cell]:
        """The cells of `wrong` that fail only because the backend declares, with no need, that they do not hold."""
        wrong = [cell for cells in self.wrong.values() for cell in cells]
        return [cell for cell in wrong if NEEDLESS in cell.figures and cell.backend in self.suite.backends]

    @cached_property
    def failed(self) -> dict[str, list[Cell]]:
        """`wrong` without `needless`."""
        own = {level: [cell for cell in cells if cell not in self.needless] for level, cells in self.wrong.items()}
        return {level: cells for level, cells in own.items() if cells}

    @property
    def verdict(self) -> str:
        """The verdict of its required levels: `fail`, `no-evidence`, `pass`, or `not-run` if nothing was judged."""
        order = (FAIL, NO_EVIDENCE, PASS)
        return next((verdict for verdict in order if verdict in self.required_verdicts), NOT_RUN)

    @property
    def required_verdicts(self) -> set[str]:
        """The verdicts that occur at the required levels."""
        return {verdict for level in self._required for verdict in self.by_level[level]}

    @property
    def _required(self) -> list[str]:
        return [level for level in LEVELS if is_required(level, self.required)]

    def _of(self, level: str, verdict: str) -> list[Cell]:
        return self.by_level[level].get(verdict, [])

    def _lacking(self, level: str) -> bool:
        return bool(self._of(level, FAIL) or self._of(level, NO_EVIDENCE))

    def _is_whole(self, level: str) -> bool:
        """Whether nothing of a right level is listed as support that could be there too."""
        return is_required(level, self.required) or not self._of(level, DECLARED)

    def _tested(self, level: str) -> int:
        return sum(map(len, self.by_level[level].values()))

    @cached_property
    def sentence(self) -> str:
        """The verdict in words."""
        if not self.is_judged or self.not_imported:
            return _nothing(self.not_imported or self.cells)
        lead = [*self._wrong_words(), *self._unknown_words()]
        numbers_wrong = bool({VALUES, GRADIENTS} & self.wrong.keys())
        parts = [*lead, *self._apart_words()]
        parts += self._right_words(brief=bool(lead))
        parts += self._left_out_words()
        if not numbers_wrong:
            parts += self._also_words() + self._support_words()
        return " ".join(parts)

    def _wrong_words(self) -> list[str]:
        numbers = [
            f"{_SUBJECT[level]} are {self._how_wrong(cells)} ({self._count(level, cells)})"
            for level, cells in self.wrong.items()
            if level in (VALUES, GRADIENTS)
        ]
        found = [f"Wrong: {' and '.join(numbers)}."] if numbers else []
        for level, cells in self.failed.items():
            if level in (VALUES, GRADIENTS):
                continue
            count = f"{len(cells)} of {self._tested(level)} cells"
            if level == SAFE:
                found.append(f"Not safe: {_properties(cells)} ({count}).")
            else:
                found.append(f"Fails: {_properties(cells)} ({count} at level {level}).")
        if self.needless:
            found.append(f"Declared not to hold, but it does: {_properties(self.needless)}.")
        return found

    def _how_wrong(self, cells: Sequence[Cell]) -> str:
        """`wrong in float32`, or `missing in float32, since forward raised ...` if each cell has the same error."""
        where = self._where(cells)
        if len({causes.raised(cell) for cell in cells}) > 1 or not causes.raised(cells[0]):
            return f"wrong{where}"
        return f"missing{where}, since {causes.error(cells[0]).partition('. ')[0]}"

    def _count(self, level: str, cells: Sequence[Cell]) -> str:
        """`3 of 20 cells`, with the properties if plain calls are right."""
        plain = any(cell.property == _PLAIN[level] for cell in cells)
        return f"{len(cells)} of {self._tested(level)} cells" + ("" if plain else f": {_properties(cells)}")

    def _unknown_words(self) -> list[str]:
        return [
            f"Not known whether {_QUESTION[level]}: {_properties(cells)} could not tell right from wrong "
            f"({len(cells)} of {self._tested(level)} cells)."
            for level in self._required
            if (cells := self._of(level, NO_EVIDENCE)) and level not in self.wrong
        ]

    def _apart_words(self) -> list[str]:
        names = [_SUBJECT[level] for level in self._required if self._of(level, FAIL) and level not in self.wrong]
        return [_capital(f"{_joined(names)} {_were(names)} not judged apart.")] if names else []

    def _left_out_words(self) -> list[str]:
        found = []
        names = [_SUBJECT[level] for level in self._required if not self._tested(level)]
        if names:
            found.append(_capital(f"{_joined(names)} {_were(names)} not judged."))
        declared = [cell for level in self._required for cell in self._of(level, DECLARED)]
        if declared:
            found.append(f"Declared as not supported: {_properties(declared)} ({_cells(len(declared))}).")
        if self.left_out:
            found.append(_quick(self.left_out, self.in_one_dtype()))
        return found

    def in_one_dtype(self) -> str:
        """How many properties were tested in one dtype alone, that in which most were, if others were in several."""
        dtypes: dict[str, set[str]] = {}
        for cell in self.cells:
            if cell.verdict != NOT_RUN:
                dtypes.setdefault(cell.property, set()).add(cell.dtype)
        every = [dtype for of in dtypes.values() for dtype in of]
        first = max(dict.fromkeys(every), key=every.count, default="")
        alone = sum(of == {first} for of in dtypes.values())
        return f"{alone} of {len(dtypes)} in {first} alone" if alone and len(set(every)) > 1 else ""

    def _also_words(self) -> list[str]:
        """With the counts: on a machine without a GPU, hardly anything of the last level is judged."""
        held = [
            f"{level} ({len(self._of(level, PASS))} of {self._tested(level)})"
            for level in (PYTORCH, PRODUCTION)
            if level in self.right and self._is_whole(level)
        ]
        also = "also " if {VALUES, GRADIENTS, SAFE} & set(self.right) else ""
        return [f"It {also}holds at {_levels(held)}."] if held else []

    def _support_words(self) -> list[str]:
        found = []
        for level in LEVELS:
            lacking = [cell for v in (FAIL, NO_EVIDENCE, DECLARED) for cell in self._of(level, v)]
            if lacking and not is_required(level, self.required):
                held = len(self._of(level, PASS))
                found.append(f"{_properties(lacking)} ({held} of {self._tested(level)} at level {level})")
        return [f"It could also support: {'; '.join(found)}."] if found else []

    def _right_words(self, brief: bool) -> list[str]:
        """`Values and gradients are right in float32, and it is safe.`; if `brief`, without the dtypes."""
        numbers = [level for level in (VALUES, GRADIENTS) if level in self.right]
        if not numbers:
            return [f"It is safe{self._as_far}."] if SAFE in self.right else []
        where = ["" if brief else self._where(self._of(level, PASS)) for level in numbers]
        if len(set(where)) == 1:
            said = f"{_joined([_SUBJECT[level] for level in numbers])} are right{where[0]}"
        else:
            said = f"values are right{where[0]}, gradients{where[1]}"
        return [_capital(f"{said}{', and it is safe' if SAFE in self.right else ''}{self._as_far}.")]

    @property
    def _as_far(self) -> str:
        return "" if self.left_out is None else ", as far as a quick run sees"

    def _where(self, cells: Sequence[Cell]) -> str:
        """The dtypes, and the devices if the implementation was tested on others too."""
        dtypes = self.suite.ordered("dtype", (cell.dtype for cell in cells))
        devices = self.suite.ordered("device", (cell.device for cell in cells))
        everywhere = {cell.device for cell in self.cells if cell.verdict != NOT_RUN}
        return f" in {_joined(dtypes)}" + (f" on {_joined(devices)}" if set(devices) != everywhere else "")


def implementations(report: Report) -> list[Implementation]:
    """Every operator in every backend, in the order of the suite."""
    own: dict[tuple[str, str], list[Cell]] = {}
    for cell in report.cells:
        own.setdefault((cell.operator, cell.backend), []).append(cell)
    left_out = tuple(report.environment["quick"]) if "quick" in report.environment else None
    operators, backends = (
        report.suite.ordered(axis, (getattr(cell, axis) for cell in report.cells)) for axis in ("operator", "backend")
    )
    return [
        Implementation(operator, backend, tuple(own[operator, backend]), report.suite, report.required, left_out)
        for operator in operators
        for backend in backends
        if (operator, backend) in own
    ]


def overall(report: Report) -> str:
    """One sentence for the report: that of its implementation, or how many implementations are right."""
    found = implementations(report)
    if not found:
        said = "Nothing was judged: no cell was selected."
    elif len(found) == 1:
        said = found[0].sentence
    else:
        said = _of_many(found)
    return said if report.complete else f"Partial: {report.why_partial()}. So far: {said}"


def outcome(report: Report) -> tuple[str, str]:
    """(the verdict of the run, its sentence). Failures above the required level change nothing.

    It is `declared` if nothing failed, but a candidate declares what is required of it.
    """
    verdicts = {one.verdict for one in implementations(report)}
    if FAIL in verdicts:
        verdict = FAIL
    elif not report.complete or NO_EVIDENCE in verdicts:
        verdict = NO_EVIDENCE
    elif PASS not in verdicts:
        verdict = NOT_RUN
    else:
        verdict = DECLARED if exit_reason(report) else PASS
    return verdict, overall(report)


def short(report: Report) -> str:
    """A few words for a badge: `values ✓ gradients ✓ safe ✓`, or `gradients wrong`."""
    found = implementations(report)
    failed = [level for level in LEVELS if any(level in one.wrong for one in found if not one.not_imported)]
    broken = any(one.not_imported for one in found)
    if failed or broken:
        said = ", ".join([*(["does not import"] if broken else []), *(_SHORT[level] for level in failed)])
        bad = sum(bool(one.wrong) for one in found)
        return f"{said} in {bad} of {len(found)}" if len(found) > 1 else said
    if not report.complete:
        return f"partial: {report.why_partial()}"
    verdicts = {level: {v for one in found for v in one.by_level[level]} for level in LEVELS}
    marks = [
        f"{level} {_mark(verdicts[level])}"
        for level in LEVELS
        if verdicts[level] and is_required(level, report.required)
    ]
    judged = any(one.is_judged for one in found)
    return " ".join(marks) if marks and judged else "nothing was judged"


def _mark(verdicts: set[str]) -> str:
    return "?" if NO_EVIDENCE in verdicts else "d" if PASS not in verdicts else "✓"


def _of_many(found: Sequence[Implementation]) -> str:
    wrong = [one for one in found if one.wrong]
    unjudged = [one for one in found if not one.is_judged]
    unknown = [one for one in found if one.verdict == NO_EVIDENCE]
    right = [one for one in found if one not in wrong and one not in unjudged and one not in unknown]
    parts = []
    numbers = [one for one in wrong if {VALUES, GRADIENTS} & one.wrong.keys()]
    if numbers:
        parts.append(f"Wrong: {_joined([_numbers_of(one) for one in numbers], _NAMED, '; ')}.")
    for level in (SAFE, PYTORCH, PRODUCTION):
        names = [_who(one) for one in wrong if level in one.failed and one not in numbers]
        if names:
            parts.append(f"{'Not safe' if level == SAFE else f'Fails at level {level}'}: {_joined(names, _NAMED)}.")
    needless = [f"{_properties(one.needless)} of {_who(one)}" for one in wrong if one.needless]
    if needless:
        parts.append(f"Declared not to hold, but it does: {_joined(needless, _NAMED, '; ')}.")
    if unknown:
        parts.append(f"Not known: {_joined([_who(one) for one in unknown], _NAMED)}.")
    if right:
        common = [level for level in LEVELS if all(level in one.right for one in right)]
        which = f"all {len(found)}" if len(right) == len(found) else f"{len(right)} of {len(found)}"
        parts.append(f"{_plural_right(common)} in {which} implementations.")
    if found[0].left_out:
        parts.append(_quick(found[0].left_out, found[0].in_one_dtype()))
    if unjudged:
        parts.append(f"{len(unjudged)} of {len(found)} {'was' if len(unjudged) == 1 else 'were'} not judged.")
    return " ".join(parts)


def _quick(left_out: Sequence[str], in_one_dtype: str) -> str:
    names = [name.replace("-", " ") for name in left_out]
    judged = f", and judged {in_one_dtype}" if in_one_dtype else ""
    return f"The run was quick: it did not judge {_joined(names, _NAMED)}{judged}."


def _plural_right(levels: Sequence[str]) -> str:
    """`Values and gradients are right, safety holds, and levels pytorch and production hold,`."""
    numbers = [_SUBJECT[level] for level in (VALUES, GRADIENTS) if level in levels]
    others = [level for level in levels if level in (PYTORCH, PRODUCTION)]
    said = [f"{_joined(numbers)} are right"] if numbers else []
    said += ["safety holds"] if SAFE in levels else []
    said += [f"{_levels(others)} hold{'s' if len(others) == 1 else ''}"] if others else []
    if not said:
        return "No failure at the required levels"
    return _capital(said[0] if len(said) == 1 else f"{', '.join(said[:-1])}, and {said[-1]},")


def _numbers_of(one: Implementation) -> str:
    """`values and gradients of lltm / mine`."""
    names = [_SUBJECT[level] for level in one.wrong if level in (VALUES, GRADIENTS)]
    return f"{'the import' if one.not_imported else _joined(names)} of {_who(one)}"


def _who(one: Implementation) -> str:
    return f"{one.operator} / {one.backend}"


def _levels(names: Sequence[str]) -> str:
    return f"level{'s' if len(names) > 1 else ''} {_joined(names)}"


def _nothing(cells: Iterable[Cell]) -> str:
    """Why nothing was judged: the reason of most cells."""
    (reason, _), *others = Counter(cell.reason.split("\n", 1)[0] for cell in cells).most_common()
    text = reason.rstrip(".") if len(reason) <= _LONGEST_REASON else f"{reason[:_LONGEST_REASON]}..."
    more = f" (and {len(others)} more reason{'s' if len(others) > 1 else ''})" if others else ""
    return f"Nothing was judged: {text}{more}" + ("" if text.endswith("...") and not more else ".")


def _properties(cells: Iterable[Cell]) -> str:
    """`opcheck, error messages and 3 more`."""
    names = list(dict.fromkeys(cell.property.replace("-", " ") for cell in cells))
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


def _cells(count: int) -> str:
    return "1 cell" if count == 1 else f"{count} cells"


def _joined(names: Sequence[str], most: int = 100, by: str = ", ") -> str:
    """`a, b and c`; with more than `most` names, `a, b and 3 more`."""
    if len(names) > most:
        names = [*names[:most], f"{len(names) - most} more"]
    return by.join(names[:-1]) + f"{' and ' if len(names) > 1 else ''}{names[-1]}" if names else ""


def _were(names: Sequence[str]) -> str:
    return "was" if len(names) == 1 and not names[0].endswith("s") else "were"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
