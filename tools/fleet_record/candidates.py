"""Distinct mutants of `implementations.py`: each edit of a function, then several edits until there are enough."""

from __future__ import annotations

import ast
import random
from itertools import zip_longest
from pathlib import Path

from harness.fleet.item import Item
from tools.mutation.operators import mutants

SOURCE = Path(__file__).with_name("implementations.py")


def sources() -> dict[str, str]:
    """The text of a file for each function: the imports, and the function alone."""
    text = SOURCE.read_text()
    body = ast.parse(text).body
    functions = [node for node in body if isinstance(node, ast.FunctionDef)]
    lines = text.splitlines(keepends=True)
    head = "".join(lines[: functions[0].lineno - 1])
    return {node.name: head + "".join(lines[node.lineno - 1 : node.end_lineno]) for node in functions}


def made(count: int) -> list[Item]:
    """So many candidates of the operators in turn, as long as one has more; in a fixed mixed order.

    The first one of each operator is the function itself. Raises ValueError if there are not so many.
    """
    each = [
        [Item(f"{name}-{number}", name, source=text, operator=name) for number, text in enumerate(texts)]
        for name, texts in ((name, _mutated(name, text, count)) for name, text in sources().items())
    ]
    found = [item for row in zip_longest(*each) for item in row if item is not None][:count]
    if len(found) < count:
        raise ValueError(f"there are {len(found)} mutants, but should be {count}")
    random.Random(0).shuffle(found)
    return found


def _mutated(name: str, text: str, most: int) -> list[str]:
    """The text, then those with one edit, then those with two, and so on; of the last kind a part, drawn."""
    found, latest = {text: 0}, [text]
    while len(found) < most and latest:
        more = {other.text for one in latest for other in mutants(f"{name}.py", one)}
        latest = sorted(more.difference(found))
        random.Random(name).shuffle(latest)
        found |= dict.fromkeys(latest, 0)
    return list(found)[:most]
