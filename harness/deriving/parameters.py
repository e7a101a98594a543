"""The parameters of a reference function: which are tensors, of what shapes, and which are attributes with values.

Shapes come from annotations in the style of jaxtyping, `Float[Tensor, "*rows features"]`, `Int[Tensor, "batch"]`,
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

from harness.deriving.modules import is_module
from harness.deriving.wording import named
from harness.errors import UsageError
from spec.contract import DTYPES, evaluate

#: Values that an attribute may have: they can be written into a contract's file.
_LITERALS = (bool, int, float, str, type(None), torch.dtype)
_INTEGERS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)


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
    """The tensors of a function, in order, and the attributes with their values.

    `positional` are the names that are passed by position, if they are others than the tensors. `dtypes` are those of
    the calls, as the annotations allow them. `outputs` are the shapes of the results, if the annotation says them.
    """

    tensors: tuple[TensorParameter, ...]
    attributes: Mapping[str, Any]
    positional: tuple[str, ...]
    dtypes: tuple[torch.dtype, ...]
    outputs: tuple[tuple[str, ...], ...] | None


def parameters_of(function: Callable[..., Any], where: str, example: Any = None) -> Parameters:
    """Read the signature, the annotations and the example. Raises UsageError, with a question, for what is not known.

    `example` is a tuple of arguments or a dict of them by name, or a function that returns one.
    """
    signature = _signature(function, where)
    given = _given(signature, where, example)
    tensors: list[TensorParameter] = []
    attributes: dict[str, Any] = {}
    positional: list[str] = []
    dtypes = list(DTYPES)
    for name, parameter in signature.parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise UsageError(f"{where}: parameter {name} takes any number of arguments: wrap it in a function without")
        value = given.get(name, parameter.default)
        shape, real = _annotated(where, name, parameter.annotation)
        if isinstance(value, Tensor) or (shape is not None and name not in given):
            tensor = value if isinstance(value, Tensor) else None
            tensors.append(TensorParameter(name, shape, *_dtype_and_example(where, name, tensor, real)))
            dtypes = [dtype for dtype in dtypes if not real or _is_own(real) or dtype in real]
        elif name in given:
            attributes[name] = _literal(where, name, value)
        elif parameter.default is parameter.empty:
            raise UsageError(
                f"{where}: what is {name}? Annotate it, for example {name}: Float[Tensor, 'batch features'], or pass "
                "--example FILE.py:FUNCTION, a function that returns the arguments of one call"
            )
        if parameter.kind is not parameter.KEYWORD_ONLY:
            positional.append(name)
    names = [tensor.name for tensor in tensors]
    if not names:
        raise UsageError(f"{where} has no parameter that is a tensor, so there is nothing to judge")
    if not dtypes:
        raise UsageError(f"{where}: no dtype suits all of {', '.join(names)}: annotate them with Float where it varies")
    while positional and positional[-1] not in names:
        positional.pop()
    for name in positional:  # one that is left out, before a tensor that is not, has its usual value
        if name not in names and name not in attributes:
            attributes[name] = _literal(where, name, signature.parameters[name].default)
    return Parameters(
        _with_own_dtypes(tensors),
        attributes,
        () if positional == names else tuple(positional),
        tuple(dtypes),
        _outputs(where, signature.return_annotation),
    )


def _signature(function: Callable[..., Any], where: str) -> inspect.Signature:
    if is_module(function):
        raise UsageError(
            f"{where} is an nn.Module, but should be a function of inputs and parameters: `python -m harness "
            "from-modules --reference FILE.py:Model --candidate FILE.py:ModelNew` writes one"
        )
    try:
        return inspect.signature(function, eval_str=True)
    except (TypeError, ValueError):
        raise UsageError(
            f"{where} has no signature that Python can read: wrap it, def reference(x): return {where}(x)"
        ) from None
    except Exception as error:
        raise UsageError(f"{where}: an annotation cannot be read: {type(error).__name__}: {error}") from None


def _given(signature: inspect.Signature, where: str, example: Any) -> dict[str, Any]:
    if example is None:
        return {}
    arguments = example
    if callable(example) and not isinstance(example, Tensor):
        try:
            arguments = example()
        except Exception as error:
            raise UsageError(
                f"--example raised {type(error).__name__}: {error}, but should return the arguments of {where}"
            ) from error
    if isinstance(arguments, Tensor):
        arguments = (arguments,)
    if not isinstance(arguments, tuple | list | Mapping):
        raise UsageError(
            f"--example gave {named(arguments)}, but should give the arguments of {where}: a tuple, or a dict by their "
            "names"
        )
    try:
        bound = signature.bind(**arguments) if isinstance(arguments, Mapping) else signature.bind(*arguments)
    except TypeError as error:
        raise UsageError(f"--example does not fit {where}: {error}") from None
    return dict(bound.arguments)


def _annotated(where: str, name: str, annotation: Any) -> tuple[tuple[str, ...] | None, tuple[torch.dtype, ...] | None]:
    """The shape and the dtypes of an annotation in the style of jaxtyping; None twice for another one."""
    text = getattr(annotation, "dim_str", None)
    if text is None:
        return None, None
    return _dimensions(where, name, text), _dtypes_of(where, name, list(getattr(annotation, "dtypes", [])))


def _dimensions(where: str, name: str, text: str) -> tuple[str, ...]:
    """`*rows`, and `...`, are one dimension here; whether there may be more is found by calling the reference."""
    found = []
    for place, dimension in enumerate(text.split()):
        plain = "rows" if dimension == "..." else dimension.lstrip("*#").rpartition("=")[2]
        plain = f"{name}_{place}".replace(" ", "_") if plain.startswith("_") else plain
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


def _dtypes_of(where: str, name: str, names: Iterable[str]) -> tuple[torch.dtype, ...]:
    """What an annotation allows: dtypes of calls, or one of integers or truth values."""
    every = [getattr(torch, text, None) for text in names]
    real = tuple(dtype for dtype in DTYPES if dtype in every)
    if real:
        return real
    if torch.bool in every:
        return (torch.bool,)
    for dtype in _INTEGERS:
        if dtype in every:
            return (dtype,)
    raise UsageError(f"{where}: {name} has the dtypes {list(names)}, but should be real numbers, integers or booleans")


def _is_own(dtypes: tuple[torch.dtype, ...]) -> bool:
    return not dtypes[0].is_floating_point


def _dtype_and_example(
    where: str, name: str, example: Tensor | None, annotated: tuple[torch.dtype, ...] | None
) -> tuple[torch.dtype | None, Tensor | None]:
    """The dtype of its own that a tensor has, and the example on the CPU."""
    if example is None:
        assert annotated is not None
        return (annotated[0] if _is_own(annotated) else None), None
    example = example.detach().cpu()
    if example.is_floating_point():
        return None, example
    if example.dtype not in (torch.bool, *_INTEGERS):
        instead = f", in place of {name}, torch.view_as_real({name}), and make it complex inside of both functions"
        raise UsageError(
            f"{where}: {name} was {example.dtype}, but should be of real numbers, integers or booleans"
            f"{': pass' + instead if example.is_complex() else ''}"
        )
    return example.dtype, example


def _with_own_dtypes(tensors: list[TensorParameter]) -> tuple[TensorParameter, ...]:
    """Beside half types, tensors whose example is float32 are float32 in every call: weights of a mixed operator."""
    real = {tensor.example.dtype for tensor in tensors if tensor.example is not None and tensor.dtype is None}
    if not (torch.float32 in real and real & {torch.float16, torch.bfloat16}):
        return tuple(tensors)
    return tuple(
        TensorParameter(each.name, each.shape, torch.float32, each.example)
        if each.example is not None and each.example.dtype == torch.float32
        else each
        for each in tensors
    )


def _literal(where: str, name: str, value: Any) -> Any:
    parts = [value]
    while parts:
        part = parts.pop()
        if isinstance(part, tuple | list):
            parts += part
        elif isinstance(part, Tensor):
            raise UsageError(f"{where}: {name} was {named(value)}: pass each tensor as an argument of its own")
        elif not isinstance(part, _LITERALS):
            raise UsageError(
                f"{where}: {name} was {named(value)}, but should be a tensor, a number, a flag, a text, a dtype, None "
                "or a tuple of these: wrap it in a function that has it already"
            )
    return value


def _outputs(where: str, annotation: Any) -> tuple[tuple[str, ...], ...] | None:
    """The shapes of the outputs, if the return annotation says them."""
    parts = getattr(annotation, "__args__", (annotation,))
    found = [_annotated(where, "the_result", part)[0] for part in parts]
    return tuple(shape for shape in found if shape is not None) if found and None not in found else None
