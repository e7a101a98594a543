"""Check a document against a JSON Schema, with errors in plain sentences; and the schema of a report."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.report.cell import CUT_OFF
from harness.report.keeping import Check, check_of

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import ValidationError

FILE = Path(__file__).with_name("report.schema.json")
_KEY = ("operator", "backend", "device", "dtype", "property")


@cache
def schema(file: Path = FILE) -> dict[str, Any]:
    """The schema in the file; by default that of a report."""
    found: dict[str, Any] = json.loads(file.read_text())
    return found


def version() -> int:
    """The version of reports that this suite writes and reads."""
    number: int = schema()["properties"]["schema"]["const"]
    return number


@cache
def _validator(file: Path) -> Draft202012Validator:
    from jsonschema import Draft202012Validator  # imported late: a process that judges never reads reports

    Draft202012Validator.check_schema(schema(file))
    return Draft202012Validator(schema(file))


def problems(record: object) -> list[str]:
    """All errors of a document: the place, the value and what it should be. Empty for a valid report."""
    return breaches(record, FILE) or [*_repeated(record), *_contradictions(record)]


@cache
def _cells() -> Draft202012Validator:
    from jsonschema import Draft202012Validator

    return Draft202012Validator({"$defs": schema()["$defs"], "$ref": "#/$defs/cell"})


def is_cell(record: object) -> bool:
    """Whether a report can hold it as a cell."""
    return _cells().is_valid(record)


@cache
def _check(file: Path) -> Check:
    return check_of(schema(file))


def breaches(record: object, file: Path) -> list[str]:
    """All violations of the schema in that file: the place, the value and what it should be."""
    if _check(file)(record):
        return []
    found = sorted(_validator(file).iter_errors(record), key=_order)
    return list(dict.fromkeys(_sentence(error) for error in found))


def _order(error: ValidationError) -> list[str]:
    return [f"{part:09}" if isinstance(part, int) else part for part in error.absolute_path]


def _sentence(error: ValidationError) -> str:
    where, was = _place(error.absolute_path), _short(error.instance)
    instance: Any = error.instance
    asked: Any = error.validator_value
    match str(error.validator):
        case "required":
            return f"{where} lacks {', '.join(name for name in asked if name not in instance)}"
        case "type":
            should = " or ".join(_TYPES[name] for name in (asked if isinstance(asked, list) else [asked]))
        case "enum":
            should = "one of " + ", ".join(str(value) or "an empty text" for value in asked)
        case "const":
            should = repr(asked)
        case "minLength":
            should = "a text that is not empty" + (", since it is no pass" if where.endswith(".reason") else "")
        case "minimum":
            should = f"{asked} or more"
        case "exclusiveMinimum":
            should = f"more than {asked}"
        case "minItems":
            should = f"a list of at least {asked}"
        case "maxItems":
            should = f"a list of at most {asked}"
        case "anyOf":
            should = "a number, or one of inf, -inf, nan"
        case _:
            return f"{where}: {error.message}"
    return f"{where} was {was}, but should be {should}"


_TYPES = {
    "array": "a list",
    "boolean": "true or false",
    "integer": "a whole number",
    "null": "null",
    "number": "a number",
    "object": "an object",
    "string": "a text",
}


def _place(path: Iterable[str | int]) -> str:
    """`cells[3].figures.worst`."""
    parts = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return parts.removeprefix(".") or "the document"


def _short(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False) if not isinstance(value, str) else repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _repeated(record: Any) -> Iterator[str]:
    """Cells with the key of an earlier cell: a reader could not know which verdict counts."""
    seen: dict[tuple[str, ...], int] = {}
    for number, row in enumerate(record["cells"]):
        key = tuple(row[name] for name in _KEY)
        first = seen.setdefault(key, number)
        if first != number:
            yield f"cells[{number}] is about {'/'.join(key)}, but so is cells[{first}]"


def _contradictions(record: Any) -> Iterator[str]:
    """Contradictions within the plan, or between the plan and the rest of the document."""
    plan = record.get("plan")
    if plan is None:
        return
    for name in ("begun", "finished"):
        beyond = [number for number in plan[name] if number > plan["shards"]]
        if beyond:
            yield f"plan.{name} has {beyond[0]}, but plan.shards is {plan['shards']}"
    if plan["finished"] and set(plan["finished"]) == set(plan["begun"]):
        if len(record["cells"]) < plan["asked"]:
            yield f"plan.finished has every part, but of {plan['asked']} cells there are {len(record['cells'])}"
        for number, row in enumerate(record["cells"]):
            if CUT_OFF in row.get("figures", {}):
                yield f"plan.finished has every part, but cells[{number}] was cut off"
    if not set(plan["finished"]) <= set(plan["begun"]):
        yield "plan.finished has shards that plan.begun lacks"
    elif record["complete"] != (len(set(plan["finished"])) == plan["shards"]):
        was, finished = json.dumps(record["complete"]), f"{plan['finished']} of {plan['shards']} shards"
        yield f"complete was {was}, but plan.finished has {finished}"
