"""A report on the terminal, in the order in which a reader asks: is it right, what failed, what is lacking.

Every failure is printed once. Where one cause fails many properties in many dtypes, its reason is printed once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from harness.rendering import facts, sentence
from harness.rendering.causes import Cause, causes
from harness.rendering.marks import MARKS, STYLES, cut, first_line, printable
from harness.report.cell import DECLARED, FAIL, NO_EVIDENCE, NOT_RUN, PASS, Cell
from harness.report.levels import GRADIENTS, LEVELS, MEANINGS, SAFE, VALUES, Standing, counted, is_required, standings
from harness.report.report import Report
from harness.report.suite import Suite

#: Up to so many implementations are told one by one.
FEW = 4
#: Causes that are printed; the report has all.
_MOST_CAUSES = 15
#: Lines of a list of which nobody reads more.
_MOST_LINES = 12
_LONGEST_REASON = 3_000
#: The verdicts of tested cells that do not hold.
_LACKING = (FAIL, NO_EVIDENCE, DECLARED)


def print_words(report: Report, console: Console, where: str) -> None:
    """The sentence, and for a few implementations each of them with a line for each level."""
    found = sentence.implementations(report)
    style = STYLES[sentence.outcome(report)[0]]
    if len(found) > FEW:
        _say(console, sentence.overall(report), 0, style)
        for one in [one for one in found if one.wrong][:_MOST_LINES]:
            _say(console, f"{one.operator} / {one.backend}: {one.sentence}", 2, STYLES[FAIL])
        console.print()
        return
    if not report.complete:
        _say(console, f"Partial: {report.why_partial()}. So far:", 0, style)
    for number, one in enumerate(found):
        if number:
            console.print()
        devices = ", ".join(report.suite.ordered("device", (cell.device for cell in one.cells)))
        _say(console, f"{one.operator} / {one.backend} on {devices}: {where}", 0, "italic")
        _say(console, one.sentence, 0, STYLES[one.verdict])
        console.print()
        for standing in standings(one.cells, report.suite):
            _level(console, standing, one)


def _level(console: Console, standing: Standing, one: sentence.Implementation) -> None:
    """`  ✗ safe         4 of 10 hold   memory, determinism`, in one line whatever the width."""
    required = is_required(standing.level, one.required)
    count = f"{standing.passed} of {standing.tested} hold" if standing.tested else "not judged"
    own = [(verdict, cell.property) for level, verdict, cell in one.counted if level == standing.level]
    lacking = dict.fromkeys(name for verdict, name in own if verdict in _LACKING)
    held = dict.fromkeys(name for verdict, name in own if verdict == PASS)
    # Of the later levels often little is judged: what was is named, in place of what the level means.
    meaning = MEANINGS[standing.level] if standing.level in (VALUES, GRADIENTS, SAFE) else ", ".join(held)
    said = ", ".join(lacking) or (meaning if held else "")
    shown = standing.verdict if required or standing.verdict != FAIL else DECLARED
    line = Text(f"  {MARKS[standing.verdict]} ", style=STYLES[shown])
    line.append(f"{standing.level:<12}{count:<16}")
    line.append("" if required else "not required  ", style="dim")
    line.append(printable(said), style="" if lacking else "dim")
    line.rstrip()
    _one_line(console, line)


def print_findings(report: Report, cells: Sequence[Cell], console: Console) -> None:
    """What failed at the required levels by cause; then what is not supported, declared, or not tested."""
    at = {level: is_required(level, report.required) for level in LEVELS}
    required: list[tuple[str, str, Cell]] = []
    above: list[tuple[str, str, Cell]] = []
    for level, verdict, cell in counted(cells, report.suite):
        (required if at[level] else above).append((level, verdict, cell))
    several = len({(cell.operator, cell.backend) for cell in cells}) > 1
    failed = [cell for _, verdict, cell in required if verdict == FAIL]
    _failed(console, causes(failed, report.suite), report.suite, several)
    for verdict, title in ((NO_EVIDENCE, "No evidence"), (DECLARED, "Declared")):
        _by_reason(console, title, [cell for _, found, cell in required if found == verdict], report.suite)
    _support(console, [(level, cell) for level, found, cell in above if found in _LACKING], report.suite)
    _by_reason(console, "Not run", [cell for cell in cells if cell.verdict == NOT_RUN], report.suite)
    _untouched(console, cells, several)


def _failed(console: Console, found: Sequence[Cause], suite: Suite, several: bool) -> None:
    if not found:
        return
    cells = sum(len(cause.cells) for cause in found)
    console.print()
    _say(console, f"Failed: {_plural(cells, 'cell')} by {_plural(len(found), 'cause')}", 0, "bold")
    for cause in found[:_MOST_CAUSES]:
        first = cause.cells[0]
        who = f"{first.operator} / {first.backend}: " if several else ""
        follows = f"; it may follow from wrong {cause.follows}" if cause.follows else ""
        _say(console, f"{MARKS[FAIL]} {who}{cause.level}: {_which(cause.cells, suite)}{follows}", 2, STYLES[FAIL])
        for line in cut(first.reason, _LONGEST_REASON).splitlines():
            _say(console, line, 4)
    if len(found) > _MOST_CAUSES:
        _say(console, f"and {len(found) - _MOST_CAUSES} more causes: see the report", 2)


def _by_reason(console: Console, title: str, cells: Iterable[Cell], suite: Suite) -> None:
    """A line for each reason."""
    reasons: dict[tuple[str, str], list[Cell]] = {}
    for cell in cells:
        reasons.setdefault((cell.verdict, first_line(cell.reason)), []).append(cell)
    lines = [
        Text(f"  {MARKS[verdict]} ", style=STYLES[verdict]).append(
            printable(f"{_plural(len(some), 'cell')}: {reason} ({_which(some, suite)})"), style="not bold"
        )
        for (verdict, reason), some in reasons.items()
    ]
    _list(console, title, lines)


def _support(console: Console, found: Iterable[tuple[str, Cell]], suite: Suite) -> None:
    """A line for each property that a level above the required one lacks."""
    groups: dict[tuple[str, str, str, str], list[Cell]] = {}
    for level, cell in found:
        groups.setdefault((level, cell.operator, cell.backend, cell.property), []).append(cell)
    several = len({key[1:3] for key in groups}) > 1
    lines = []
    for (level, operator, backend, _), some in sorted(groups.items(), key=lambda item: LEVELS.index(item[0][0])):
        who = f"{operator} / {backend}: " if several else ""
        said = f"{who}{level}: {_which(some, suite)}: {first_line(some[0].reason)}"
        lines.append(Text(f"  {MARKS[DECLARED]} ", style=STYLES[DECLARED]).append(printable(said), style="not bold"))
    _list(console, "Not supported, and not required", lines)


def _untouched(console: Console, cells: Sequence[Cell], several: bool) -> None:
    """A line for each file with lines that no call reached, and the lines of a lone implementation."""
    lines = []
    for found in facts.untouched(cells):
        who = f"{found.name()}: " if several else ""
        lines += [Text(printable(f"  {who}{said}")) for said in found.sentences]
        if not several:
            lines += [Text(printable(f"    {line.file}:{line.line}: {line.text}"), style="dim") for line in found.lines]
    _list(console, "Reached by no call", lines)


def _list(console: Console, title: str, lines: Sequence[Text]) -> None:
    if not lines:
        return
    console.print()
    _say(console, title, 0, "bold")
    for line in lines[:_MOST_LINES]:
        _one_line(console, line)
    if len(lines) > _MOST_LINES:
        _say(console, f"and {len(lines) - _MOST_LINES} more: see the report", 2)


def _which(cells: Sequence[Cell], suite: Suite) -> str:
    """`layouts, sizes (float32, float16)`, with the devices if there are several."""
    names = list(dict.fromkeys(cell.property for cell in cells))
    devices = suite.ordered("device", (cell.device for cell in cells))
    dtypes = suite.ordered("dtype", (cell.dtype for cell in cells))
    return f"{', '.join(names)} ({', '.join(dtypes)}{' on ' + ', '.join(devices) if len(devices) > 1 else ''})"


def _plural(count: int, one: str) -> str:
    return f"{count:,} {one}{'' if count == 1 else 's'}"


def _one_line(console: Console, line: Text) -> None:
    """Cut at the edge of a terminal; a log has no edge, but is cut too."""
    line.truncate(console.width, overflow="ellipsis")
    console.print(line, soft_wrap=True)


def _say(console: Console, text: str, indent: int, style: str = "") -> None:
    """Text that is wrapped at words in a terminal; in a log each line stays whole, so that it can be searched."""
    line = printable(text)
    bare = line.lstrip(" ")
    indent += len(line) - len(bare)
    said = Text(bare, style=style)
    if console.is_terminal:
        console.print(Padding(said, (0, 0, 0, min(indent, console.width // 2))))
    else:
        console.print(Text(" " * indent).append_text(said), soft_wrap=True)
