"""The parameters of a reference function: which are tensors, of what shapes, and which are attributes with values.

Shapes come from annotations in the style of jaxtyping, `Float[Tensor, "batch features"]`, `Int[Tensor, "batch"]`,
`Bool[Tensor, "batch features"]`, or from example inputs. jaxtyping itself is not needed here: an annotation has its
dtypes and its dimensions as attributes.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from harness.errors import UsageError
from spec.contract import evaluate

#: Values that an attribute may have: they can be written into a contract's file.
_LITERALS = (bool, int, float, str, type(None))


@dataclass(frozen=True)
class TensorParameter:
    """A parameter that is a tensor. `shape` has an expression for each dimension; None if only an example is known.

    `dtype` is None for real numbers, whose dtype is that of the call.
    """

    name: str
    shape: tuple[str, ...] | None
    dtype: torch.dtype | None
    example: Tensor | None


@dataclass(frozen=True)
class Parameters:
    """The tensors of a function, in order, and the attributes that are passed by name."""

    tensors: tuple[TensorParameter, ...]
    attributes: Mapping[str, Any]
    outputs: tuple[tuple[str, ...], ...] | None


def parameters_of(function: Callable[..., Any], where: str, example: Any = None) -> Parameters:
    """Read the signature, the annotations and the example. Raises UsageError, with a question, for what is not known.

    `example` is a tuple of arguments or a dict of them by name, or a function that returns one.
    """
    signature = inspect.signature(function, eval_str=True)
    given = _given(signature, where, example)
    tensors: list[TensorParameter] = []
    attributes: dict[str, Any] = {}
    for name, parameter in signature.parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise UsageError(f"{where}: parameter {name} takes any number of arguments: wrap it in a function without")
        value = given.get(name, parameter.default)
        annotated = _annotated(where, name, parameter.annotation)
        if isinstance(value, Tensor) or (annotated is not None and name not in given):
            if parameter.kind is parameter.KEYWORD_ONLY or attributes:
                raise UsageError(
                    f"{where}: the tensor {name} follows an attribute or is passed by name alone; tensors should come "
                    "first: wrap the function"
                )
            shape, dtype = annotated or (None, _dtype(where, name, value))
            tensors.append(TensorParameter(name, shape, dtype, value if isinstance(value, Tensor) else None))
        elif name in given:
            attributes[name] = _literal(where, name, value)
        elif parameter.default is parameter.empty:
            raise UsageError(
                f"{where}: what is {name}? Annotate it, for example {name}: Float[Tensor, 'batch features'], or pass "
                "--example FILE.py:FUNCTION, a function that returns the arguments of one call"
            )
    if not tensors:
        raise UsageError(f"{where} has no parameter that is a tensor, so there is nothing to judge")
    return Parameters(tuple(tensors), attributes, _outputs(where, signature.return_annotation))


def _given(signature: inspect.Signature, where: str, example: Any) -> dict[str, Any]:
    if example is None:
        return {}
    arguments = example() if callable(example) and not isinstance(example, Tensor) else example
    if isinstance(arguments, Tensor):
        arguments = (arguments,)
    if not isinstance(arguments, tuple | list | Mapping):
        raise UsageError(
            f"--example gave {type(arguments).__name__}, but should give the arguments of {where}: a tuple, or a dict "
            "by their names"
        )
    try:
        bound = signature.bind(**arguments) if isinstance(arguments, Mapping) else signature.bind(*arguments)
    except TypeError as error:
        raise UsageError(f"--example does not fit {where}: {error}") from None
    return dict(bound.arguments)


def _annotated(where: str, name: str, annotation: Any) -> tuple[tuple[str, ...], torch.dtype | None] | None:
    """The shape and dtype of an annotation in the style of jaxtyping; None for another one."""
    text = getattr(annotation, "dim_str", None)
    if text is None:
        return None
    return _dimensions(where, name, text), _dtype_of(where, name, list(getattr(annotation, "dtypes", [])))


def _dimensions(where: str, name: str, text: str) -> tuple[str, ...]:
    found = []
    for dimension in text.split():
        plain = dimension.removeprefix("*")
        if dimension == "..." or not plain.replace("_", "a").isidentifier():
            try:
                evaluate(plain, {})
            except KeyError:
                pass
            except (ValueError, SyntaxError):
                raise UsageError(
                    f"{where}: dimension {dimension!r} of {name} should be a name, a number or arithmetic of them"
                ) from None
        found.append(plain)
    return tuple(found)


def _dtype_of(where: str, name: str, names: Iterable[str]) -> torch.dtype | None:
    names = list(names)
    if any(text.startswith(("float", "bfloat")) for text in names):
        return None
    if "bool" in names:
        return torch.bool
    if any(text.startswith(("int", "uint")) for text in names):
        return torch.int64
    raise UsageError(f"{where}: {name} has the dtypes {names}, but should be real numbers, integers or booleans")


def _dtype(where: str, name: str, tensor: Tensor) -> torch.dtype | None:
    if tensor.is_floating_point():
        return None
    if tensor.dtype in (torch.bool, torch.int32, torch.int64, torch.int16, torch.int8, torch.uint8):
        return tensor.dtype
    raise UsageError(f"{where}: {name} was {tensor.dtype}, but should be of real numbers, integers or booleans")


def _literal(where: str, name: str, value: Any) -> Any:
    parts = value if isinstance(value, tuple | list) else (value,)
    if not all(isinstance(part, _LITERALS) for part in parts):
        raise UsageError(
            f"{where}: {name} was {value!r}, but should be a tensor, a number, a flag, a text, None or a tuple of these"
        )
    return value


def _outputs(where: str, annotation: Any) -> tuple[tuple[str, ...], ...] | None:
    """The shapes of the outputs, if the return annotation says them."""
    parts = getattr(annotation, "__args__", (annotation,))
    found = [_annotated(where, "the result", part) for part in parts]
    return tuple(shape for shape, _ in found if found) if all(found) and found else None  # type: ignore[misc]
