"""Text that a candidate's process has written, made fit for a reason: it may look like what the suite says.

What a terminal obeys is written out, and so is the beginning of a command to a system of continuous integration: those
are read from what a run prints. A name is one short line. Further lines of a message are indented, so that none can be
taken for a line of the summary.
"""

from __future__ import annotations

import re
from typing import Any

#: What a terminal could obey, what changes the direction of text or ends a line, and what no file or XML can hold.
_UNREADABLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)
#: The first character of commands: `::error::` of GitHub at the beginning of a line, `##vso[` of Azure Pipelines and
#: `##teamcity[` anywhere.
_COMMAND = re.compile(r"(?m)^([^\S\n]*):(?=:[A-Za-z])|#(?=#[A-Za-z]*\[)")
#: Characters of a name, such as that of a class.
_NAME = 200


def readable(value: Any) -> Any:
    """The value with each unreadable character of its texts written out, such as `\\x1b`."""
    match value:
        case str():
            plain = _UNREADABLE.sub(lambda found: ascii(found[0])[1:-1], value)
            return _COMMAND.sub(lambda found: r"\x23" if found[0] == "#" else rf"{found[1]}\x3a", plain)
        case list():
            return [readable(one) for one in value]
        case dict():
            return {readable(name): readable(one) for name, one in value.items()}
    return value


def place(where: str) -> str:
    """The name of a file, which may have anything but a NUL in it, in one line."""
    return str(readable(where)).replace("\n", r"\n")


def name(text: object) -> str:
    """A name in one line, cut."""
    line = " ".join(str(text).split())
    return line if len(line) <= _NAME else f"{line[:_NAME]}..."


def message(text: str) -> str:
    """A message whose further lines are indented, as those of an explanation are."""
    first, *others = text.splitlines() or [""]
    return "\n".join([first, *(line if line.startswith("  ") else f"    {line}" for line in others)])
