"""Derive a contract from a reference function."""

from __future__ import annotations

import hashlib
import importlib.util
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from filelock import FileLock
from torch import Tensor

from harness import discovery
from harness.building.cache import cache_root
from harness.deriving import chosen_gradient
from harness.deriving.constants import with_constants, without
from harness.deriving.derived import Derived
from harness.deriving.dtypes import dtypes_of
from harness.deriving.families import families
from harness.deriving.flat import flat
from harness.deriving.invariants import renamed, renaming, row_symbol, with_any_rank
from harness.deriving.multiples import in_units, shrunk, with_fixed_windows
from harness.deriving.outputs import with_dtypes
from harness.deriving.parameters import TensorParameter, parameters_of
from harness.deriving.refusals import refuse, refuse_call
from harness.deriving.saving import source
from harness.deriving.shapes import symbols_of
from harness.deriving.shifts import with_shifts
from harness.deriving.sizes import caller, cases, outputs_of, with_gradients
from harness.deriving.values import inputs_of, symbols_in
from harness.deriving.wording import first_line
from harness.errors import UsageError
from harness.judging.one_thread import one_thread
from harness.report.atomic_write import write_atomically
from spec import derived as derived_contracts
from spec.contract import Operator, TensorArg
from spec.derived import Reference, function_of
from spec.envelope import MOST, NUMBERS

#: Seed of PyTorch's random numbers while an example is made: its deviation is that of all values that are drawn.
_SEED = 0


def derive(text: str, example: str = "", forward_only: bool = False) -> Derived:
    """The contract of `FILE.py:FUNCTION` or `package.module:FUNCTION`; `example` names a function in the same way.

    With `forward_only` no gradient is asked, whatever the function says of its own. Raises UsageError, with the reason
    and what to do, for a reference that cannot be used.
    """
    where, function = _found("--reference", text)
    return derive_from(function, _found("--example", example)[1] if example else None, text, where, forward_only)


def derive_from(
    function: Callable[..., Any], example: Any = None, text: str = "", where: str = "", forward_only: bool = False
) -> Derived:
    """The contract of a function; `example` is a tuple or dict of its arguments, or a function that returns one.

    `text` names the function in messages, and `where` is its file or module. Raises as `derive` does.
    """
    own = getattr(function, "__name__", "reference")
    with one_thread(), warnings.catch_warnings(), torch.random.fork_rng(devices=[]):
        warnings.simplefilter("ignore")  # what PyTorch says about sizes that are only tried
        torch.manual_seed(_SEED)
        gradient = chosen_gradient.NONE if forward_only else chosen_gradient.of(text or own, function)
        return _derived(function, example, text or own, where, own if own.isidentifier() else "reference", gradient)


def _derived(function: Callable[..., Any], example: Any, text: str, where: str, own: str, gradient: str) -> Derived:
    parameters = parameters_of(function, text, example)
    tensors = parameters.tensors
    reference = Reference(function, tuple(p.name for p in tensors), parameters.attributes, parameters.positional)
    if any(parameter.shape is None for parameter in tensors):
        exact = tuple(replace(p, example=_exact(p.example)) for p in tensors)
        refuse_call(text, reference, [p.example for p in exact if p.example is not None])
        shapes = symbols_of(text, exact, reference.forward)
        tensors = tuple(replace(p, shape=found.shape) for p, found in zip(tensors, shapes, strict=True))
    lengths = _lengths(text, tensors)
    made = inputs_of(text, tensors, lengths, reference.forward)
    made, lengths, windows = with_fixed_windows(made, lengths, reference.forward)
    made, lengths, in_multiples = in_units(text, made, lengths, reference.forward)
    made = shrunk(made)
    small, symbols = made.small, symbols_in(made.args)
    if gradient == chosen_gradient.NONE:
        inputs = without(made.args, reference.tensors)
    else:
        reference, inputs = with_constants(reference, made.args, small)
    refuse_call(text, reference, [arg.cast(x, torch.float64) for arg, x in zip(inputs, made.ordinary(), strict=True)])
    stated = parameters.outputs if not in_multiples and not windows else None
    outputs = outputs_of(text, symbols, small, made.call, stated)
    inputs, outputs = with_dtypes(text, reference, inputs, outputs, small, parameters.dtypes)
    rows = row_symbol(inputs, outputs, small, reference.forward)
    names = renaming(symbols, rows)
    inputs, outputs = (tuple(renamed(arg, names) for arg in args) for args in (inputs, outputs))
    small, lengths = ({names.get(k, k): v for k, v in sizes.items()} for sizes in (small, lengths))
    inputs = with_any_rank(inputs, small, reference.forward)
    name = f"{own}_by_reference" if own in discovery.operators() else own
    call = caller(inputs, reference.forward)
    found = cases([names.get(symbol, symbol) for symbol in symbols], small, lengths, call, inputs)
    is_derivative = gradient != chosen_gradient.AUTOGRAD
    bare = reference.operator(name, inputs, outputs, found, is_derivative=is_derivative)
    has_steps = refuse(text, bare, small)
    reference = with_shifts(reference, bare, small)
    found, without_sizes = with_gradients(bare, found)
    dtypes, without_dtypes = dtypes_of(text, reference, inputs, outputs, small, parameters.dtypes)
    suitable = families(bare, small)

    def contract(inputs: tuple[TensorArg, ...]) -> Operator:
        of_families = suitable.names, dtypes, suitable.unrepeated
        return reference.operator(name, inputs, outputs, found, *of_families, is_derivative, has_steps)

    operator = contract(inputs)
    stepped = flat(operator, small)
    operator = contract(without(inputs, stepped)) if stepped else operator
    return Derived(
        where,
        getattr(function, "__name__", own),
        operator,
        reference,
        suitable.names,
        (
            *_sentences(operator, rows),
            *(f"{name} has no gradient: an operation of the reference has none of it" for name in reference.constants),
            *(f"{name} has no gradient: that of the reference is 0 everywhere, or noise" for name in stepped),
            *(f"a length is {each}" for each in in_multiples.values()),
            *(f"the window {symbol} has the length {length}" for symbol, length in windows.items()),
        ),
        (*without_sizes, *without_dtypes, *suitable.left_out),
    )


def _sentences(operator: Operator, rows: str | None) -> Iterator[str]:
    if rows is None:
        yield "no dimension along which the rows of all outputs do not depend on each other"
    else:
        called = "batch" if rows == "batch" else f"{rows}, here called batch,"
        yield f"the rows along {called} do not depend on each other, alone or in another order"
    free = [arg.name for arg in operator.inputs if arg.any_rank]
    if free:
        yield f"{', '.join(free)} may have more leading dimensions"
    if operator.has_steps and operator.real_outputs:
        yield "it rounds to whole numbers: nothing is asked of an element that rounding moves by a step"
    if not operator.is_derivative:
        yield "the gradient is what autograd returns of the reference, which says that it is not the derivative"
    if operator.real_outputs and not operator.has_gradient:
        yield "no gradient is asked: the reference has none or says so, or --forward-only does"
    discrete = [arg.name for arg in operator.outputs if not arg.is_floating]
    if discrete:
        yield f"{', '.join(discrete)} must be exactly right wherever rounding does not decide what it is"
    numbers = [arg.name for arg in operator.outputs if arg.dtype in NUMBERS]
    if numbers:
        yield f"{', '.join(numbers)} must be within what rounding changes, where that is {MOST} or less"
    for arg in operator.inputs:
        if arg.whole:
            yield f"{arg.name} has the values 0 and 1, as in the example, and no gradient"
        elif arg.offsets:
            yield f"{arg.name} has offsets, as in the example: they do not fall, from 0 to {arg.high}"
        elif arg.uniform:
            yield f"{arg.name} has values from {arg.low} to {arg.high}, as in the example; outside is no result"


def contract_file(text: str, example: str = "", forward_only: bool = False) -> tuple[Path, str]:
    """The file of a derived contract in the cache, and the operator's name. It is derived once for the same sources."""
    read = [part for path in _sources(text, example) for part in (str(path.resolve()).encode(), path.read_bytes())]
    asked = (text, example, torch.__version__, str(forward_only))
    digest = hashlib.sha256(b"\0".join([*(each.encode() for each in asked), *read]))
    path = cache_root() / "contracts" / f"{digest.hexdigest()[:16]}.py"
    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(path.with_suffix(".lock")):
        if not path.exists():
            write_atomically(path, source(derive(text, example, forward_only), path.parent))
    name: str = discovery.import_file(path, f"external_spec_{path.stem}").OPERATOR.name
    return path, name


def _sources(*texts: str) -> Iterator[Path]:
    """The files of these functions, and those that derive a contract."""
    for text in texts:
        where = text.rpartition(":")[0]
        if where.endswith(".py"):
            if not Path(where).exists():
                raise UsageError(f"{where} does not exist")
            yield Path(where)
        elif where:
            try:
                module = importlib.util.find_spec(where)
            except (ImportError, ValueError):
                module = None  # the message comes when it is imported
            if module is not None and module.origin and Path(module.origin).is_file():
                yield Path(module.origin)
    yield from sorted(Path(str(derived_contracts.__file__)).parent.glob("*.py"))
    yield from sorted(Path(__file__).parent.glob("*.py"))


def _found(option: str, text: str) -> tuple[str, Callable[..., Any]]:
    where, _, name = text.rpartition(":")
    if not where or not name:
        raise UsageError(f"{option} was {text!r}, but should be FILE.py:FUNCTION or package.module:FUNCTION")
    if where.endswith(".py") and not Path(where).exists():
        raise UsageError(f"{option}: {where} does not exist")
    try:
        function = function_of(where, name)
    except AttributeError:
        raise UsageError(f"{option}: {where} has no function {name!r}") from None
    except Exception as error:
        raise UsageError(f"{option}: {where} does not import: {first_line(error)}") from error
    return where, function


def _exact(tensor: Tensor | None) -> Tensor | None:
    return tensor.double() if tensor is not None and tensor.is_floating_point() else tensor


def _lengths(where: str, parameters: tuple[TensorParameter, ...]) -> dict[str, int]:
    """The example's own sizes; empty without an example. Raises UsageError where it has other dimensions."""
    found: dict[str, int] = {}
    for parameter in parameters:
        if parameter.example is None:
            return {}
        shape, given = parameter.shape or (), tuple(parameter.example.shape)
        for symbol, length in zip(shape, given, strict=False):
            if len(shape) != len(given) or found.setdefault(symbol, length) != length:
                raise UsageError(
                    f"{where}: {parameter.name} was of shape {given} in the example, but should be "
                    f"({', '.join(shape)}), as it is annotated: correct one of the two"
                )
    return {symbol: length for symbol, length in found.items() if symbol.isidentifier()}
