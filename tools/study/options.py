"""What the commands of all studies that write a record and draw it have in common."""

from __future__ import annotations

import argparse
from collections.abc import Sequence


def parsed(parser: argparse.ArgumentParser, arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """The options. Exits with code 2 if there is neither a record to write (`output`) nor one to draw (`draw`)."""
    given = parser.parse_args(arguments)
    if not given.output and not given.draw:
        parser.error("nothing to do: name the record that is written (-o FILE), or one to draw (--draw FILE)")
    return given
