"""Whether a document surely keeps a JSON Schema: one pass of functions that were made from the schema once.

jsonschema, which says what is wrong, takes 1 ms for a cell, and a record of a machine has thousands of them. Here "no"
means only that jsonschema has to be asked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

Check = Callable[[Any], bool]
#: What is said of a document, and asks nothing of it.
_WORDS = frozenset({"$schema", "$id", "$defs", "title", "description"})


def check_of(schema: Mapping[str, Any]) -> Check:
    """Whether a document surely keeps this schema. Of a schema with a keyword that is not known here: always no."""
    made: dict[str, Check] = {}
    try:
        for name, part in schema.get("$defs", {}).items():
            made[f"#/$defs/{name}"] = _made(part, made)
        return _made(schema, made)
    except NotImplementedError:
        return _never


def _never(_: Any) -> bool:
    return False


def _always(_: Any) -> bool:
    return True


def _made(schema: Mapping[str, Any], named: Mapping[str, Check]) -> Check:
    """`named` has the parts by their references, some of which are added later. Raises NotImplementedError."""
    checks = []
    read_with = {"then": "if", "additionalProperties": "properties"}
    for keyword, value in schema.items():
        if keyword in _WORDS or read_with.get(keyword) in schema:
            continue
        if keyword not in _MADE:
            raise NotImplementedError(keyword)
        checks.append(_MADE[keyword](value, schema, named))
    if len(checks) == 1:
        return checks[0]
    both = tuple(checks)

    def check(document: Any) -> bool:
        for each in both:  # noqa: SIM110 - a loop, which takes half the time of `all`
            if not each(document):
                return False
        return True

    return check


def _type(value: Any, *_: Any) -> Check:
    kinds = frozenset(kind for name in ([value] if isinstance(value, str) else value) for kind in _TYPES[name])
    return lambda document: type(document) in kinds


#: By the exact type: a bool is no number. That 1.0 is a whole number too is left to jsonschema.
_TYPES: dict[str, tuple[type, ...]] = {
    "array": (list,),
    "boolean": (bool,),
    "integer": (int,),
    "null": (type(None),),
    "number": (int, float),
    "object": (dict,),
    "string": (str,),
}


def _enum(value: Any, *_: Any) -> Check:
    if not all(isinstance(one, str) for one in value):
        raise NotImplementedError("enum of other values than texts")
    words = frozenset(value)
    return lambda document: type(document) is str and document in words


def _const(value: Any, *_: Any) -> Check:
    kind = type(value)
    if kind not in (int, str):
        raise NotImplementedError("const of another value than a whole number or a text")
    return lambda document: type(document) is kind and document == value


def _minimum(value: Any, *_: Any) -> Check:
    return lambda document: not isinstance(document, int | float) or document >= value


def _maximum(value: Any, *_: Any) -> Check:
    return lambda document: not isinstance(document, int | float) or document <= value


def _exclusive_minimum(value: Any, *_: Any) -> Check:
    return lambda document: not isinstance(document, int | float) or document > value


def _min_length(value: Any, *_: Any) -> Check:
    return lambda document: not isinstance(document, str) or len(document) >= value


def _min_items(value: Any, *_: Any) -> Check:
    return lambda document: not isinstance(document, list) or len(document) >= value


def _max_items(value: Any, *_: Any) -> Check:
    return lambda document: not isinstance(document, list) or len(document) <= value


def _required(value: Any, *_: Any) -> Check:
    names = frozenset(value)
    return lambda document: not isinstance(document, dict) or names <= document.keys()


def _items(value: Any, _: Any, named: Mapping[str, Check]) -> Check:
    item = _made(value, named)
    return lambda document: not isinstance(document, list) or all(map(item, document))


def _properties(value: Any, schema: Mapping[str, Any], named: Mapping[str, Check]) -> Check:
    """With what the others are, where the schema says it."""
    fields = {name: _made(part, named) for name, part in value.items()}
    others = _other(schema["additionalProperties"], named) if "additionalProperties" in schema else None

    def check(document: Any) -> bool:
        if not isinstance(document, dict):
            return True
        for name, held in document.items():
            its = fields.get(name, others)
            if its is not None and not its(held):
                return False
        return True

    return check


def _other(value: Any, named: Mapping[str, Check]) -> Check:
    return {True: _always, False: _never}[value] if isinstance(value, bool) else _made(value, named)


def _additional(value: Any, _: Any, named: Mapping[str, Check]) -> Check:
    """Of a schema without `properties`."""
    other = _other(value, named)
    return lambda document: not isinstance(document, dict) or all(map(other, document.values()))


def _property_names(value: Any, _: Any, named: Mapping[str, Check]) -> Check:
    name = _made(value, named)
    return lambda document: not isinstance(document, dict) or all(map(name, document))


def _any_of(value: Any, _: Any, named: Mapping[str, Check]) -> Check:
    ways = [_made(part, named) for part in value]
    return lambda document: any(way(document) for way in ways)


def _ref(value: str, _: Any, named: Mapping[str, Check]) -> Check:
    return lambda document: named[value](document)  # noqa: PLW0108 - a part may name itself, and is made later


def _if(value: Any, schema: Mapping[str, Any], named: Mapping[str, Check]) -> Check:
    """What is not surely so is asked as if it were so: `then` asks more than nothing."""
    if set(value) - {"properties", "required"} or "else" in schema:
        raise NotImplementedError("if")
    then = _made(schema["then"], named)
    excluded = _surely_not(value)
    return lambda document: excluded(document) or then(document)


def _surely_not(condition: Mapping[str, Any]) -> Check:
    """Whether a document surely does not keep a condition: it has a text that is none of those asked for."""
    words = {name: frozenset(part["enum"]) for name, part in condition["properties"].items() if set(part) == {"enum"}}

    def check(document: Any) -> bool:
        if not isinstance(document, dict):
            return False
        return any(type(found := document.get(name)) is str and found not in asked for name, asked in words.items())

    return check


_MADE: dict[str, Callable[[Any, Mapping[str, Any], Mapping[str, Check]], Check]] = {
    "$ref": _ref,
    "additionalProperties": _additional,
    "anyOf": _any_of,
    "const": _const,
    "enum": _enum,
    "exclusiveMinimum": _exclusive_minimum,
    "if": _if,
    "items": _items,
    "maxItems": _max_items,
    "maximum": _maximum,
    "minItems": _min_items,
    "minLength": _min_length,
    "minimum": _minimum,
    "properties": _properties,
    "propertyNames": _property_names,
    "required": _required,
    "type": _type,
}
