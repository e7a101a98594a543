"""The shape of a contract: what an operator is, and what an implementation of it owes.

An `Operator` is data and plain functions. It names the tensors that go in and come out, with symbolic
shapes; gives the mathematics twice, as `forward` and as a closed-form `vjp`; and lists the sizes and
the values at which implementations have gone wrong.

Shapes are written as Python expressions over size symbols, `("3*state_size", "state_size + input_features")`,
and evaluated where the symbols are known, so that an error message can show both the rule and the number.
"""

from __future__ import annotations

import ast
import operator as python_operator
from collections.abc import Callable, Mapping
from dataclasses import astuple, dataclass, field
from functools import cache, partial
from math import prod
from typing import Any

import torch
from torch import Tensor

Sizes = Mapping[str, int]
Shape = tuple[int, ...]

#: The dtypes that an implementation is asked for unless its backend says otherwise.
DTYPES: tuple[torch.dtype, ...] = (torch.float32, torch.float64, torch.float16, torch.bfloat16)

_ARITHMETIC: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: python_operator.add,
    ast.Sub: python_operator.sub,
    ast.Mult: python_operator.mul,
    ast.Div: python_operator.truediv,
    ast.Pow: python_operator.pow,
}


Formula = Callable[[Sizes], float]


@cache
def _parsed(expression: str) -> ast.expr:
    return ast.parse(expression, mode="eval").body


@cache
def _formula(expression: str) -> Formula:
    """The expression as a function of the sizes; ValueError for what is not one.

    Made of closures, because torch.compile can trace those, and a syntax tree it cannot.
    """

    def formula(node: ast.expr) -> Formula:
        match node:
            case ast.Constant(value=int() | float() as number):
                return lambda sizes: number  # noqa: ARG005
            case ast.Name(id=symbol):
                return lambda sizes: sizes[symbol]
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                negated = formula(operand)
                return lambda sizes: -negated(sizes)
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _ARITHMETIC:
                first, apply, second = formula(left), _ARITHMETIC[type(op)], formula(right)
                return lambda sizes: apply(first(sizes), second(sizes))
        raise ValueError(f"{expression!r} is not an arithmetic expression over size symbols")

    return formula(_parsed(expression))


def evaluate(expression: str, sizes: Sizes) -> float:
    """Value of an arithmetic expression over size symbols.

    Raises KeyError for a symbol that `sizes` lacks, ValueError for anything but `+ - * / **`, numbers and names.
    """
    return _formula(expression)(sizes)


@dataclass(frozen=True)
class TensorArg:
    """A named tensor of an operator.

    `shape` holds one expression a dimension. `scale` is the standard deviation of ordinary test values,
    an expression too, chosen so that the operator is neither linear nor saturated there. `blocks` names the parts
    that a dimension consists of, as (name, length) pairs a dimension, so that a report can say which part is wrong.
    `optional`: None may stand for it. `any_rank`: more or fewer leading dimensions are right too.
    """

    name: str
    shape: tuple[str, ...]
    differentiable: bool = True
    scale: str = "1"
    blocks: tuple[tuple[tuple[str, str], ...], ...] = ()
    optional: bool = False
    any_rank: bool = False
    #: `shape` as functions, kept here so that `shape_for` can be traced by torch.compile.
    _dimensions: tuple[Formula, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_dimensions", tuple(_formula(expression) for expression in self.shape))

    @property
    def row_dim(self) -> int | None:
        """The dimension along which the rows of the batch lie; None for what is shared by all of them."""
        return self.shape.index("batch") if "batch" in self.shape else None

    def shape_for(self, sizes: Sizes) -> Shape:
        """The shape in numbers; symbolic where `sizes` are."""
        lengths = (dimension(sizes) for dimension in self._dimensions)
        # A size that stands for any number, as torch.export has them, would by int() become the one that it is now.
        return tuple(int(length) if isinstance(length, float) else length for length in lengths)

    def blocks_of(self, dim: int, sizes: Sizes) -> tuple[tuple[str, int, int], ...]:
        """(name, begin, end) of each named part of dimension `dim`; empty where it has none."""
        found, begin = [], 0
        for name, length in self.blocks[dim] if dim < len(self.blocks) else ():
            end = begin + int(evaluate(length, sizes))
            found.append((name, begin, end))
            begin = end
        return tuple(found)

    def rule(self) -> str:
        """The shape in symbols, as error messages show it: `(3*state_size,)`."""
        return f"({', '.join(self.shape)}{',' if len(self.shape) == 1 else ''})"


class Draw:
    """Random float64 CPU tensors from one seed, independent of torch's global generator."""

    def __init__(self, seed: int) -> None:
        self._generator = torch.Generator().manual_seed(seed)

    def normal(self, shape: Shape, scale: float = 1.0) -> Tensor:
        """Gaussian values with standard deviation `scale`."""
        return torch.randn(shape, generator=self._generator, dtype=torch.float64) * scale

    def choice(self, shape: Shape, values: tuple[float, ...]) -> Tensor:
        """Each element one of `values`, with equal chance."""
        index = torch.randint(len(values), shape, generator=self._generator)
        return torch.tensor(values, dtype=torch.float64)[index]

    def uniform(self, shape: Shape, low: float, high: float) -> Tensor:
        """Values uniform in [low, high)."""
        return torch.rand(shape, generator=self._generator, dtype=torch.float64) * (high - low) + low


#: Rules of an operator under torch.autocast.
LOWER, FLOAT32 = "lower", "float32"

#: The phases of a call that are timed apart.
FORWARD, BACKWARD, FORWARD_AND_BACKWARD = PHASES = ("forward", "backward", "forward+backward")


@dataclass(frozen=True)
class Cost:
    """The least that a phase takes: bytes between memory and processor, and floating-point operations in products.

    `between` are the bytes that are moved beside the products, where each of these is a call of its own.
    """

    bytes: int
    flops: int
    between: int = 0


@dataclass(frozen=True)
class Case:
    """Named sizes, with where they come from. Tests and benchmarks share them.

    `tags`: "size" cases are run by the sizes property, "small" ones by everything that differentiates
    numerically, "benchmark" ones are timed, "large" ones need tens of gigabytes and an accelerator. "block"
    and "grid" beside "size" say what a case is there for: where threads form none, the sizes property leaves out the
    first, and asks for the second in one dtype.
    """

    name: str
    sizes: Sizes
    origin: str
    tags: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Family:
    """A way to choose input values: `make(sizes, draw, dtype)` returns one float64 tensor for each input name.

    `dtype` is the dtype that the candidate will see, for families that live at its edges.
    """

    name: str
    purpose: str
    make: Callable[[Sizes, Draw, torch.dtype], dict[str, Tensor]]


@dataclass(frozen=True)
class Invariant:
    """What some outputs must be at inputs made for it, in closed form: no reference is needed to tell.

    `make(sizes, draw, dtype)` returns the inputs, as a family does. `outputs(*inputs)` returns the outputs that the
    invariant speaks of, by name. `bitwise`: they are exact in every dtype, so that nothing else is right.
    """

    name: str
    claim: str
    make: Callable[[Sizes, Draw, torch.dtype], dict[str, Tensor]]
    outputs: Callable[..., dict[str, Tensor]]
    bitwise: bool = False


@dataclass(frozen=True)
class Refusal:
    """A call that must raise, though no single tensor of it is wrong: an attribute does not fit, say.

    `call(function, *inputs)` makes it from the tensors of a right call. The error must name `argument`, and match the
    patterns `tells`: what it was, what it should be.
    """

    what: str
    argument: str
    call: Callable[..., Any]
    tells: tuple[str, ...] = ()


@dataclass(frozen=True)
class Operator:
    """The contract of one operator.

    `forward(*inputs)` is the reference, in plain torch, for any floating dtype; it is judged in float64.
    `vjp(inputs, cotangents)` is the gradient in closed form, one tensor for each input.
    `saved` names what autograd keeps of the reference for backward, besides inputs and outputs: the measure of what an
    implementation may keep. Where it names nothing, nothing is said about it.
    `intermediates(*inputs)` names the steps in between, in the order in which they are computed.
    `unspecified(inputs, cotangents)`, where the contract leaves a derivative open, is `vjp` with NaN in its place: a
    gradient may be anything where the two differ.
    `invariants` hold without a reference. `recurrent` names (output, input) pairs: what one step returns and the next
    one takes. `sequential` are the size symbols that the reference loops over: its time is in proportion to them.

    Whatever is judged is a function of tensors. An operator that also takes attributes, any rank, or None for a tensor
    comes in several forms, each a contract of its own with the name of its `form`: `call(function, *tensors)` calls an
    implementation as this form does. The first form is the operator itself, `forms` holds the others, and a property
    holds where it holds in every form. `refusals` are wrong calls that cannot be made by spoiling one tensor.

    `autocast` is the rule under torch.autocast: `LOWER`, all floating tensors but float64 ones are cast to autocast's
    dtype and the call is one in that dtype, as for a matrix product; or `FLOAT32`, they are cast to float32, as for a
    normalisation. Where it is empty, the contract has no rule, and nothing is asked.

    `flops` are the multiplications and additions of the matrix products of forward and of backward, as expressions over
    the sizes. Pointwise operations are not counted: they hide behind the bytes that they read and write. `elementwise`
    are the elements that forward and backward read and write beside those products, at least, where each of these is a
    call of its own; 0 where it is nothing, or nobody has said.
    """

    name: str
    inputs: tuple[TensorArg, ...]
    outputs: tuple[TensorArg, ...]
    forward: Callable[..., tuple[Tensor, ...]]
    vjp: Callable[[tuple[Tensor, ...], tuple[Tensor, ...]], tuple[Tensor, ...]]
    intermediates: Callable[..., dict[str, Tensor]]
    cases: tuple[Case, ...]
    families: tuple[Family, ...] = field(default=())
    invariants: tuple[Invariant, ...] = field(default=())
    recurrent: tuple[tuple[str, str], ...] = field(default=())
    sequential: tuple[str, ...] = field(default=())
    unspecified: Callable[[tuple[Tensor, ...], tuple[Tensor, ...]], tuple[Tensor, ...]] | None = None
    form: str = ""
    forms: tuple[Operator, ...] = field(default=())
    call: Callable[..., Any] | None = None
    refusals: tuple[Refusal, ...] = field(default=())
    flops: tuple[str, str] = ("0", "0")
    elementwise: tuple[str, str] = ("0", "0")
    saved: tuple[TensorArg, ...] = field(default=())
    autocast: str = ""

    def __post_init__(self) -> None:
        if self.autocast not in ("", LOWER, FLOAT32):
            raise ValueError(
                f"autocast of {self.name} was {self.autocast!r}, but should be '', {LOWER!r} or {FLOAT32!r}"
            )
        names = [form.form for form in self.every_form()]
        if len(set(names)) < len(names) or any(form.name != self.name or form.forms for form in self.forms):
            raise ValueError(f"the forms of {self.name} were {names}, but should have its name and differ in `form`")

    @property
    def title(self) -> str:
        """`lltm`, or `layer_norm[vector]` where there are several forms."""
        return f"{self.name}[{self.form}]" if self.form else self.name

    def every_form(self) -> tuple[Operator, ...]:
        """All ways to call the operator, this one first."""
        return (self, *self.forms)

    def in_form(self, name: str) -> Operator:
        """The form of that name; KeyError with the known names otherwise."""
        for form in self.every_form():
            if form.form == name:
                return form
        raise KeyError(f"{self.name} has no form {name!r}; it has {', '.join(f.form for f in self.every_form())}")

    def bound(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """An implementation as a function of this form's tensors alone."""
        return function if self.call is None else partial(self.call, function)

    @property
    def signature(self) -> str:
        """`lltm(input, weights, ...) -> (new_h, new_cell)`."""
        inputs = ", ".join(arg.name for arg in self.inputs)
        return f"{self.name}({inputs}) -> ({', '.join(arg.name for arg in self.outputs)})"

    def symbols(self) -> tuple[str, ...]:
        """The size symbols, in order of first appearance."""
        seen: dict[str, None] = {}
        for arg in (*self.inputs, *self.outputs):
            for expression in arg.shape:
                for node in ast.walk(_parsed(expression)):
                    if isinstance(node, ast.Name):
                        seen[node.id] = None
        return tuple(seen)

    def cost(self, phase: str, sizes: Sizes, itemsize: int) -> Cost:
        """What no implementation can do without, for elements of `itemsize` bytes: the roofline of a phase.

        Forward reads every input and writes every output once. Backward reads inputs and cotangents and writes the
        gradients; what an implementation saves in between is its own choice, and not counted. Raises ValueError for an
        unknown phase.
        """
        if phase not in PHASES:
            raise ValueError(f"phase was {phase!r}, but should be one of {', '.join(PHASES)}")
        if phase == FORWARD_AND_BACKWARD:
            parts = [self.cost(part, sizes, itemsize) for part in (FORWARD, BACKWARD)]
            return Cost(*(sum(figures) for figures in zip(*map(astuple, parts), strict=True)))
        gradients = tuple(arg for arg in self.inputs if arg.differentiable) if phase == BACKWARD else ()
        elements = sum(prod(arg.shape_for(sizes)) for arg in (*self.inputs, *self.outputs, *gradients))
        flops, between = (int(evaluate(rule[PHASES.index(phase)], sizes)) for rule in (self.flops, self.elementwise))
        return Cost(elements * itemsize, flops, between * itemsize)

    def case(self, name: str) -> Case:
        """The case of that name; KeyError with the known names otherwise."""
        for case in self.cases:
            if case.name == name:
                return case
        raise KeyError(f"{self.name} has no case {name!r}; it has {', '.join(c.name for c in self.cases)}")

    def family(self, name: str) -> Family:
        """The value family of that name; `normal` always exists."""
        if name == "normal":
            return Family("normal", "ordinary values", lambda sizes, draw, _: self.ordinary(sizes, draw))
        for family in self.families:
            if family.name == name:
                return family
        known = ", ".join(("normal", *(family.name for family in self.families)))
        raise KeyError(f"{self.name} has no value family {name!r}; it has {known}")

    def ordinary(self, sizes: Sizes, draw: Draw) -> dict[str, Tensor]:
        """Gaussian inputs, each with the scale that its `TensorArg` states."""
        return {arg.name: draw.normal(arg.shape_for(sizes), evaluate(arg.scale, sizes)) for arg in self.inputs}
