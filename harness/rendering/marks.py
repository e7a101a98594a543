"""The mark and the colour of each verdict, and text of a report made fit for a terminal, a document or a page."""

from __future__ import annotations

import re
from typing import TextIO

from rich.console import Console

from harness.report.cell import DECLARED, FAIL, NO_EVIDENCE, NOT_RUN, PASS

#: A mark for each verdict, so that colour is never the only difference.
MARKS = {FAIL: "✗", NO_EVIDENCE: "?", DECLARED: "d", PASS: "✓", NOT_RUN: "-"}
STYLES = {FAIL: "bold red", NO_EVIDENCE: "yellow", DECLARED: "cyan", PASS: "green", NOT_RUN: "dim"}

#: The most characters of one text of a candidate in any rendering; the JSON report has all of it.
LONGEST = 20_000
#: Control characters but for the tab and the end of a line, and characters that reverse the direction of text.
_UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def console(stream: TextIO) -> Console:
    """A console; for a log, which has no width, it is wide enough that no table is cut."""
    return Console(file=stream, width=None if stream.isatty() else 140)


def printable(text: str) -> str:
    """The text without characters that a terminal obeys: `\\x1b` becomes these four characters."""
    return _UNPRINTABLE.sub(_escaped, text)


def _escaped(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def cut(text: str, longest: int = LONGEST) -> str:
    """The text, or its beginning and how much is left out."""
    return text if len(text) <= longest else f"{text[:longest]}... ({len(text) - longest:,} more characters)"


def first_line(text: str, longest: int = 500) -> str:
    """The first line, cut."""
    return cut(text.split("\n", 1)[0], longest)


def brief(text: str) -> str:
    """A sentence of a report, cut: it may have names of any length."""
    return cut(text, 2_000)


def plain(text: str) -> str:
    """Text on one line, escaped so that neither Markdown nor HTML nor a terminal interprets it."""
    line = printable(" ".join(cut(text).split()))
    return re.sub(r"[\\`*{}\[\]<>#!|~&@$]|(?<![^\W_])_|_(?![^\W_])", lambda found: f"&#{ord(found[0])};", line)
