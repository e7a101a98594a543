"""The parts of pages in `page/`: Jinja templates, which escape every text of a report, and styles and scripts."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from harness.rendering.marks import brief, printable


def part(name: str) -> str:
    """The text of a file in `page/`."""
    return (files(__package__) / "page" / name).read_text(encoding="utf-8").strip()


def _printable(value: Any) -> Any:
    """A text of a report; what is markup already was made here."""
    return printable(value) if isinstance(value, str) and not isinstance(value, Markup) else value


@cache
def environment() -> Environment:
    """What renders the templates: it escapes all values, and a name that is not given is an error.

    Characters that reverse the direction of text are written out, as in a terminal.
    """
    made = Environment(
        loader=PackageLoader(__package__, "page"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_printable,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["brief"] = brief
    made.policies["json.dumps_kwargs"] = {"separators": (",", ":"), "ensure_ascii": False, "allow_nan": False}
    return made
