"""From a variant and its literals to the text of a file."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from tests.zoo.thresholds.facts import Facts

_TEMPLATES = Environment(
    loader=FileSystemLoader(Path(__file__).parent / "templates"),
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
)


def text(template: str, facts: Facts, literals: Mapping[str, Any], faulty: bool) -> str:
    """The file of an implementation: the fault, or its honest twin."""
    base = f"base/{facts.name}.py.jinja"
    return rendered(template, base=base, operator=facts.name, facts=facts, size=facts.size, faulty=faulty, **literals)


def rendered(template: str, **given: Any) -> str:
    """The template's text with what it asks for."""
    found = _TEMPLATES.get_template(f"{template}.py.jinja").render(**given)
    return re.sub(r"\n{4,}", "\n\n\n", found)
