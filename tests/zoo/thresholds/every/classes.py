"""The classes of faults: which conditions and effects each draws. A fault that does not show is drawn again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import torch

from spec.contract import TensorArg
from tests.zoo.thresholds.drawn import ALIASING, CALLS, GRAD, NO_GRAD, STALE, STATE, Expanded, Witness
from tests.zoo.thresholds.every import conditions as when
from tests.zoo.thresholds.every.conditions import Condition
from tests.zoo.thresholds.every.form import Form, Length
from tests.zoo.thresholds.variant import log_uniform
from tests.zoo.thresholds.variants.processor_state import ROUNDING
from tests.zoo.thresholds.variants.race import REPEATS

DTYPES = (torch.float16, torch.bfloat16, torch.float64)


@dataclass(frozen=True)
class Plan:
    """One fault: the template of its effect, its literals, and a call that shows it."""

    template: str
    words: str
    literals: Mapping[str, Any]
    witness: Witness
    dtype: torch.dtype = torch.float32


CLASSES: dict[str, list[Callable[[Random, Form], Plan]]] = {}


def _of(kind: str) -> Callable[[Callable[[Random, Form], Plan]], Callable[[Random, Form], Plan]]:
    def register(plan: Callable[[Random, Form], Plan]) -> Callable[[Random, Form], Plan]:
        CLASSES.setdefault(kind, []).append(plan)
        return plan

    return register


def _witness(rng: Random, form: Form, condition: Condition, **more: Any) -> Witness:
    return Witness(
        **{
            "sizes": form.sizes(rng, **condition.sizes),
            "layouts": condition.layouts,
            "values": condition.values,
            "mode": condition.mode,
            "wanted": condition.wanted,
            "form": form.contract.form,
            **more,
        }
    )


def _test(rng: Random, form: Form, condition: Condition) -> str:
    """The test in the source: it is made in calls of this form, or of its attributes."""
    attribute = form.attribute(rng) if rng.random() < 0.4 else ""
    parts = (form.guard(), attribute, condition.test)
    return " and ".join(part for part in parts if part not in ("", "True")) or "True"


def _plan(
    rng: Random,
    form: Form,
    template: str,
    condition: Condition,
    does: str,
    literals: Mapping[str, Any] | None = None,
    dtype: torch.dtype = torch.float32,
    **more: Any,
) -> Plan:
    every = {"test": _test(rng, form, condition), **(literals or {})}
    return Plan(
        f"every/{template}",
        ", ".join(filter(None, (condition.words, does))),
        every,
        _witness(rng, form, condition, **more),
        dtype,
    )


# What a path of its own does wrong.


def _wrong_result(rng: Random, form: Form, condition: Condition, block: int = 1, symbol: str = "", **more: Any) -> Plan:
    """The end of a result is 0 or repeats what is before it; behind whole blocks if the condition is on its length."""
    position = rng.randrange(len(form.contract.outputs))
    output = form.contract.outputs[position]
    dims = [dim for dim, length in enumerate(output.shape) if length == symbol]
    if not output.shape:
        return _wrong_reading(rng, form, condition, block, symbol, **more)
    dim = dims[0] if dims else rng.randrange(len(output.shape))
    value = rng.choice(("zero", "before"))
    literals = {"position": position, "dim": dim, "block": block if dims else 1, "value": value}
    does = f"the end of {output.name} in dimension {dim} is {'0' if value == 'zero' else 'that before it'}"
    return _plan(rng, form, "result", condition, does, literals, **more)


def _wrong_gradient(
    rng: Random, form: Form, condition: Condition, block: int = 1, symbol: str = "", **more: Any
) -> Plan:
    """The end of a gradient is 0."""
    names = condition.wanted or form.differentiable
    args = [form.arg(name) for name in names]
    with_symbol = [arg for arg in args if symbol in arg.shape]
    arg = rng.choice(with_symbol or args)
    dim = arg.shape.index(symbol) if with_symbol else rng.randrange(len(arg.shape))
    literals = {"name": arg.name, "dim": dim, "block": block if with_symbol else 1}
    return _plan(rng, form, "gradient", condition, f"the end of the gradient of {arg.name} is 0", literals, **more)


def _wrong_reading(
    rng: Random, form: Form, condition: Condition, block: int = 1, symbol: str = "", **more: Any
) -> Plan:
    """The last part of an input is read from another place: from where a block begins that ends with the tensor."""
    args = [arg for arg in form.tensors if not arg.offsets]
    with_symbol = [arg for arg in args if symbol in arg.shape]
    arg = rng.choice(with_symbol or args)
    dim = arg.shape.index(symbol) if with_symbol else rng.randrange(len(arg.shape))
    literals = {"name": arg.name, "dim": dim, "block": max(block if with_symbol else 1, 2)}
    does = f"the end of {arg.name} in dimension {dim} is read from another place"
    return _plan(rng, form, "reading", condition, does, literals, **more)


_EFFECTS = (_wrong_result, _wrong_gradient, _wrong_reading)


def _in_a_tail(rng: Random, form: Form, length: Length, **more: Any) -> Plan:
    sized = when.a_tail(rng, form, length)
    return rng.choice(_EFFECTS)(rng, form, sized.condition, sized.block, length.symbol, **more)


@_of("rows")
def rows(rng: Random, form: Form) -> Plan:
    """A tail of the first dimension."""
    return _in_a_tail(rng, form, when.a_length(rng, form, leading=True))


@_of("rows")
def sums_over_rows(rng: Random, form: Form) -> Plan:
    """The gradient of a parameter leaves out the last rows."""
    shared = [name for name in form.differentiable if form.arg(name).row_dim is None]
    length = form.length("batch")
    if not shared or length is None or any(arg.row_dim is None for arg in form.contract.outputs):
        raise ValueError("no parameter is shared by rows")
    sized = when.a_tail(rng, form, length)
    literals = {
        "block": sized.block,
        "rows": {arg.name: arg.row_dim for arg in form.tensors if arg.row_dim is not None},
        "shared": [arg.name for arg in form.tensors if arg.row_dim is None],
        "lost": rng.choice(shared),
        "length": length.text,
        "dims": [arg.row_dim for arg in form.contract.outputs],
    }
    does = f"the gradient of {literals['lost']} leaves out the last rows"
    return _plan(rng, form, "sums", sized.condition, does, literals)


@_of("other-sizes")
def other_tail(rng: Random, form: Form) -> Plan:
    """A tail of another dimension."""
    return _in_a_tail(rng, form, when.a_length(rng, form, leading=False))


@_of("other-sizes")
def one_size(rng: Random, form: Form) -> Plan:
    """One exact size."""
    length = when.a_length(rng, form)
    return rng.choice(_EFFECTS)(rng, form, when.exactly(rng, form, length), 1, length.symbol)


@_of("dtypes")
def tail_of_a_dtype(rng: Random, form: Form) -> Plan:
    """A tail in one dtype."""
    dtype, length = rng.choice(DTYPES), when.a_length(rng, form)
    sized = when.a_tail(rng, form, length)
    condition = Condition(f"{form.tensors[0].name}.dtype == {dtype}", f"in {dtype}") & sized.condition
    return rng.choice(_EFFECTS)(rng, form, condition, sized.block, length.symbol, dtype=dtype)


@_of("modes")
def without_grad(rng: Random, form: Form) -> Plan:
    """From a size on without grad."""
    length = when.a_length(rng, form)
    condition = when.a_mode(rng) & when.from_least(rng, form, length)
    return rng.choice((_wrong_result, _wrong_reading))(rng, form, condition, 1, length.symbol)


@_of("modes")
def subset(rng: Random, form: Form) -> Plan:
    """From a size on where some inputs require grad."""
    length = when.a_length(rng, form)
    condition = when.a_subset(rng, form) & when.from_least(rng, form, length)
    return _wrong_gradient(rng, form, condition, 1, length.symbol)


@_of("values")
def values(rng: Random, form: Form) -> Plan:
    """From a size on where the values of a tensor have something in common."""
    length = when.a_length(rng, form)
    condition = when.of_values(rng, form, rng.choice(form.tensors))
    if rng.random() < 0.7:
        condition &= when.from_least(rng, form, length)
    return rng.choice(_EFFECTS)(rng, form, condition, 1, length.symbol)


@_of("guessed-layout")
def guessed(rng: Random, form: Form) -> Plan:
    """A matrix is read as its transpose where two sizes are in a ratio."""
    matrices = [arg for arg in form.tensors if len(arg.shape) > 1]
    arg = rng.choice(matrices)
    own = [length for length in form.lengths(arg.name) if length.dim >= length.rank - 2]
    lengths = own if len(own) == 2 and rng.random() < 0.5 else form.lengths()
    lengths = [length for length in lengths if not form.arg(length.name).offsets]
    one, other = rng.sample(lengths, 2)
    if one.symbol == other.symbol:
        raise ValueError("both lengths are one size")
    condition = when.in_ratio(rng, form, one, other)
    return _plan(rng, form, "transpose", condition, f"{arg.name} is read as its transpose", {"name": arg.name})


# Pairs.


def _misread(rng: Random, form: Form, condition: Condition, name: str) -> Plan:
    condition = when.in_layout(name, "transposed") & condition
    return _plan(rng, form, "misread", condition, f"{name} is read as if it were not transposed", {"name": name})


def _matrix(rng: Random, form: Form) -> TensorArg:
    return rng.choice([arg for arg in form.tensors if len(arg.shape) > 1])


@_of("pairs")
def two_layouts(rng: Random, form: Form) -> Plan:
    """Two tensors lie in memory in some ways."""
    if len(form.tensors) < 2:
        raise ValueError("there is one tensor only")
    name = _matrix(rng, form).name
    other = rng.choice([arg.name for arg in form.tensors if arg.name != name])
    return _misread(rng, form, when.a_layout(rng, form, other), name)


@_of("pairs")
def layout_and_values(rng: Random, form: Form) -> Plan:
    """A tensor is transposed, and it or another one has values of some kind."""
    name = _matrix(rng, form).name
    return _misread(rng, form, when.of_values(rng, form, rng.choice(form.tensors)), name)


@_of("pairs")
def layout_and_mode(rng: Random, form: Form) -> Plan:
    """A tensor lies in memory in some way, without grad or where some inputs require grad."""
    name = rng.choice(form.tensors).name
    other = when.a_mode(rng) if rng.random() < 0.5 else when.a_subset(rng, form)
    effect = _wrong_reading if other.mode != GRAD else rng.choice(_EFFECTS)
    return effect(rng, form, when.a_layout(rng, form, name) & other)


@_of("pairs")
def values_and_mode(rng: Random, form: Form) -> Plan:
    """Values of some kind, without grad or where some inputs require grad."""
    condition = when.of_values(rng, form, rng.choice(form.tensors))
    if rng.random() < 0.5:
        return rng.choice((_wrong_result, _wrong_reading))(rng, form, condition & when.a_mode(rng))
    return _wrong_gradient(rng, form, condition & when.a_subset(rng, form))


def _of_cotangent(rng: Random, form: Form) -> tuple[int, str, dict[str, Expanded], str]:
    """A position, a test of the cotangent g, the cotangents that have it, and words."""
    position = rng.randrange(len(form.contract.outputs))
    output = form.contract.outputs[position]
    rank = len(output.shape)
    if rank < 2:
        raise ValueError("a vector is no matrix")
    dim, words = rng.choice(((rank - 2, "the same for all rows"), (rank - 1, "the same in all columns")))
    test = f"g.shape[{dim}] > 1 and g.stride({dim}) == 0"
    return position, test, {output.name: Expanded((dim,))}, f"the cotangent of {output.name} is {words}"


@_of("pairs")
def layout_and_cotangent(rng: Random, form: Form) -> Plan:
    """A tensor lies in memory in some way, and a cotangent repeats numbers."""
    position, test, kinds, words = _of_cotangent(rng, form)
    condition = when.a_layout(rng, form, rng.choice(form.tensors).name)
    literals = {"position": position, "of_g": test, "effect": "scalar"}
    does = f"and {words}, it is taken for a scalar"
    return _plan(rng, form, "cotangent", condition, does, literals, cotangents=kinds)


@_of("pairs")
def subset_and_cotangent(rng: Random, form: Form) -> Plan:
    """Some inputs require grad, and a cotangent repeats numbers."""
    position, test, kinds, words = _of_cotangent(rng, form)
    length = when.a_length(rng, form)
    least = log_uniform(rng, 2, min(40, form.limit(length.symbol)))
    size = length.of(length.symbol_for(least))
    condition = when.a_subset(rng, form) & Condition(
        f"{length.text} >= {least}", f"from {length.text} {least} on", {length.symbol: length.symbol_for(size)}
    )
    literals = {"position": position, "of_g": test, "effect": "scalar"}
    does = f"and {words}, it is taken for a scalar"
    return _plan(rng, form, "cotangent", condition, does, literals, cotangents=kinds)


# Cotangents.


@_of("cotangents")
def repeated_scalar(rng: Random, form: Form) -> Plan:
    """A cotangent that is one number everywhere is taken for 1, or limited."""
    position = rng.randrange(len(form.contract.outputs))
    output = form.contract.outputs[position]
    length = when.a_length(rng, form)
    limited = rng.random() < 0.5 or not output.shape
    factor = round(rng.uniform(1.05, 200.0), 2)
    literals = {
        "position": position,
        "of_g": "not any(g.stride())",
        "effect": "limited" if limited else "one",
        "limit": factor,
    }
    condition = Condition("", "") if limited else when.from_least(rng, form, length, 2)
    does = f"a repeated scalar for {output.name} is {f'limited to {factor}' if limited else 'taken for 1'}"
    kinds = {arg.name: Expanded(tuple(range(len(arg.shape))), 2 * factor) for arg in form.contract.outputs}
    return _plan(rng, form, "cotangent", condition, does, literals, cotangents=kinds)


@_of("cotangents")
def repeated_rows(rng: Random, form: Form) -> Plan:
    """A cotangent that is the same for all rows, or in all columns, is taken for a scalar from a size on."""
    position, test, kinds, words = _of_cotangent(rng, form)
    condition = when.from_least(rng, form, when.a_length(rng, form), 2)
    literals = {"position": position, "of_g": test, "effect": "scalar"}
    return _plan(
        rng, form, "cotangent", condition, f"where {words}, it is taken for a scalar", literals, cotangents=kinds
    )


# Memory, time and state.


@_of("aliasing")
def written_into_an_input(rng: Random, form: Form) -> Plan:
    """Without grad, a result is written into an input of its shape, at one size."""
    pairs = [
        (position, arg.name)
        for position, output in enumerate(form.contract.outputs)
        for arg in form.tensors
        if arg.is_floating and arg.shape == output.shape and arg.shape
    ]
    if not pairs:
        raise ValueError("no input has the shape of a result")
    position, name = rng.choice(pairs)
    condition = when.exactly(rng, form, when.a_length(rng, form)) & Condition(
        "not torch.is_grad_enabled()", "", mode=NO_GRAD
    )
    result = form.contract.outputs[position].name
    does = f"{result} is written into the memory of {name}"
    return _plan(rng, form, "written", condition, does, {"position": position, "name": name}, sees=ALIASING)


#: By operator: a result and the input that it equals, the values and sizes for which it does, and the form.
_SAME: dict[str, tuple[str, tuple[tuple[str, str, float], ...], dict[str, int], str]] = {
    "rms_norm": ("input", (("input", "fill", 0.0),), {}, "weight"),
    "layer_norm": ("input", (("input", "fill", 0.0),), {}, "no-affine"),
    "group_norm": ("input", (("input", "fill", 0.0),), {}, "no-affine"),
    "swiglu": ("gate", (("gate", "fill", 0.0),), {}, "rows"),
    "geglu": ("gate", (("gate", "fill", 0.0),), {}, "rows"),
    "rotary": ("input", (("cos", "fill", 1.0), ("sin", "fill", 0.0)), {}, "halves"),
    "scan": ("tokens", (("gates", "fill", 0.0),), {}, "from-zero"),
    "causal_conv1d": ("input", (("weight", "fill", 1.0),), {"width": 1}, "no-bias"),
    "attention": ("value", (), {"queries": 1, "tokens": 1}, "full"),
    "embedding": ("weight", (("indices", "distinct", 0.0),), {}, "rows"),
    "lltm": ("old_cell", (("bias", "fill", -1000.0),), {}, ""),
    "lltm_sequence": ("c0", (("bias", "fill", -1000.0),), {}, ""),
}


@_of("aliasing")
def unchanged_is_returned(rng: Random, form: Form) -> Plan:
    """Without grad, an input is returned itself where the result equals it."""
    if form.contract.name not in _SAME or _SAME[form.contract.name][3] != form.contract.form:
        raise ValueError("no result equals an input")
    name, values, fixed, _ = _SAME[form.contract.name]
    position = len(form.contract.outputs) - 1
    lengths = [length for length in form.lengths() if length.symbol not in fixed]
    condition = when.from_least(rng, form, rng.choice(lengths), 1) & Condition(
        "not torch.is_grad_enabled()", "", mode=NO_GRAD
    )
    sizes = form.sizes(rng, **fixed, **condition.sizes)
    if form.contract.name == "embedding":
        sizes["batch"] = sizes["entries"] = max(sizes["batch"], sizes["entries"])
    result = form.contract.outputs[position].name
    literals = {"position": position, "name": name}
    does = f"{result} is {name} itself where both are equal"
    return _plan(rng, form, "unchanged", replace(condition, values=values), does, literals, sizes=sizes, sees=ALIASING)


@_of("aliasing")
def equal_rows_share_memory(rng: Random, form: Form) -> Plan:
    """Without grad, results of equal rows are one row."""
    of_rows = {arg.name: arg.row_dim for arg in form.tensors if arg.row_dim is not None}
    length = form.length("batch")
    if length is None or any(arg.row_dim is None for arg in form.contract.outputs):
        raise ValueError("there are no rows")
    condition = Condition("not torch.is_grad_enabled()", "without grad", mode=NO_GRAD)
    condition &= when.from_least(rng, form, length, 2)
    condition = replace(condition, values=tuple((name, "repeat", 0.0) for name in of_rows))
    literals = {"rows": of_rows, "dims": [arg.row_dim for arg in form.contract.outputs]}
    does = "results of equal rows are one row with stride 0"
    return _plan(rng, form, "equal_rows", condition, does, literals, sees=ALIASING)


@_of("stale")
def answer(rng: Random, form: Form) -> Plan:
    """The last answer, found by all addresses or by one."""
    names = [arg.name for arg in form.tensors]
    key = rng.choice(names)
    by_one = len(names) > 1 and rng.random() < 0.5
    changed = rng.choice([name for name in names if not by_one or name != key])
    condition = when.a_mode(rng) & when.from_least(rng, form, when.a_length(rng, form))
    literals = {"keys": [key] if by_one else names, "every": names}
    does = f"the last answer is found by the address of {f'{key} alone' if by_one else 'every tensor'}"
    return _plan(rng, form, "stale", condition, does, literals, sees=STALE, changed=(changed,))


@_of("stale")
def kept_parameter(rng: Random, form: Form) -> Plan:
    """A tensor is made dense once, and found by its address."""
    name = rng.choice(form.tensors).name
    condition = when.a_mode(rng) & when.from_least(rng, form, when.a_length(rng, form, name))
    does = f"{name} is copied once and found by its address"
    return _plan(rng, form, "kept", condition, does, {"name": name}, sees=STALE, changed=(name,))


@_of("race")
def race(rng: Random, form: Form) -> Plan:
    """From a size on, the end of a result or of a gradient is 0 now and then."""
    length = when.a_length(rng, form)
    condition = when.from_least(rng, form, length)
    outputs = [arg for arg in form.contract.outputs if length.symbol in arg.shape]
    grads = [form.arg(name) for name in form.differentiable if length.symbol in form.arg(name).shape]
    of_gradient = not outputs or (bool(grads) and rng.random() < 0.5)
    if of_gradient and not grads:
        raise ValueError("no gradient has that size")
    arg = rng.choice(grads if of_gradient else outputs)
    literals = {
        "name": arg.name,
        "of_gradient": of_gradient,
        "position": 0 if of_gradient else form.contract.outputs.index(arg),
        "dim": arg.shape.index(length.symbol),
        "by_clock": rng.random() < 0.5,
        "chance": round(rng.uniform(0.1, 0.5), 2),
        "seed": rng.randrange(10**6),
        "share": rng.choice((2, 3, 4, 8)),
    }
    what = f"the gradient of {arg.name}" if of_gradient else arg.name
    does = f"the last part of {what} is 0 with a chance of {literals['chance']}"
    return _plan(rng, form, "race", condition, does, literals, sees=CALLS, repeats=REPEATS)


@_of("processor-state")
def denormals(rng: Random, form: Form) -> Plan:
    """Denormal numbers are flushed afterwards."""
    condition = when.in_blocks(rng, form, when.a_length(rng, form))
    return _plan(rng, form, "denormals", condition, "denormal numbers are flushed to 0 after the call", sees=STATE)


@_of("processor-state")
def rounding(rng: Random, form: Form) -> Plan:
    """Rounding goes another way afterwards."""
    condition = when.in_blocks(rng, form, when.a_length(rng, form))
    mode = rng.choice(list(ROUNDING))
    x86, arm = ROUNDING[mode]
    literals = {"mode": mode, "x86": f"{x86:#x}", "arm": f"{arm:#x}"}
    return _plan(rng, form, "rounding", condition, f"rounding is {mode} after the call", literals, sees=STATE)
