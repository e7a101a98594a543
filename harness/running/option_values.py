"""Parsers for values of command-line options, with their error messages."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable

from harness.errors import UsageError
from harness.report.shards import Shard


def whole(least: int, most: int = 2**31 - 1) -> Callable[[str], int]:
    """A whole number from `least` to `most`."""

    def read(text: str) -> int:
        digits = text.removeprefix("-")
        if not (digits.isascii() and digits.isdigit() and len(digits) <= 10 and least <= int(text) <= most):
            raise argparse.ArgumentTypeError(f"was {text!r}, but should be a whole number from {least} to {most}")
        return int(text)

    return read


def seconds(text: str) -> float:
    """A time above 0."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"was {text!r}, but should be a number of seconds above 0")
    return value


def shard(text: str) -> str:
    """`K/N`, checked but still text, because options are sent to workers as text."""
    try:
        Shard.parse(text)
    except UsageError as error:
        raise argparse.ArgumentTypeError(str(error).removeprefix("--shard ")) from None
    return text
