"""The parts of pages in `page/`: Jinja templates, which escape every text of a report, and styles and scripts."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined

from harness.rendering.marks import brief


def part(name: str) -> str:
    """The text of a file in `page/`."""
    return (files(__package__) / "page" / name).read_text(encoding="utf-8").strip()


@cache
def environment() -> Environment:
    """What renders the templates: it escapes all values, and a name that is not given is an error."""
    made = Environment(
        loader=PackageLoader(__package__, "page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["brief"] = brief
    made.policies["json.dumps_kwargs"] = {"separators": (",", ":"), "ensure_ascii": False, "allow_nan": False}
    return made
