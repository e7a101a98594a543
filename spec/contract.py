"""The form of a contract: what an operator is, and what an implementation of it must do.

An `Operator` is data and plain functions. It names the input and output tensors with symbolic shapes. It gives the
mathematics twice: as `forward`, and as a closed-form `vjp`. It lists the sizes and the values at which implementations
have gone wrong.

Shapes are Python expressions over size symbols, `("3*state_size", "state_size + input_features")`. They are evaluated
where the symbols are known, so an error message can show both the expression and the number.
"""

from __future__ import annotations

import ast
import operator as python_operator
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import astuple, dataclass, field, replace
from functools import cache, partial
from math import prod
from typing import Any

import torch
from torch import Tensor

Sizes = Mapping[str, int]
Shape = tuple[int, ...]

#: The dtypes in which an implementation is judged unless its backend declares others.
DTYPES: tuple[torch.dtype, ...] = (torch.float32, torch.float64, torch.float16, torch.bfloat16)

_ARITHMETIC: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: python_operator.add,
    ast.Sub: python_operator.sub,
    ast.Mult: python_operator.mul,
    ast.Div: python_operator.truediv,
    ast.FloorDiv: python_operator.floordiv,
    ast.Pow: python_operator.pow,
}


Formula = Callable[[Sizes], float]


@cache
def _parsed(expression: str) -> ast.expr:
    return ast.parse(expression, mode="eval").body


@cache
def _symbols(expressions: tuple[str, ...]) -> tuple[str, ...]:
    """The names in the expressions, in order of first appearance."""
    nodes = (node for expression in expressions for node in ast.walk(_parsed(expression)))
    return tuple(dict.fromkeys(node.id for node in nodes if isinstance(node, ast.Name)))


@cache
def _formula(expression: str) -> Formula:
    """The expression as a function of the sizes. Raises ValueError for what is no arithmetic expression.

    It is built of closures, because torch.compile can trace closures but not a syntax tree.
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

    Allowed are numbers, names and `+ - * / // **`; anything else raises ValueError. Raises KeyError for a symbol that
    `sizes` lacks.
    """
    return _formula(expression)(sizes)


#: What the values of one tensor alone may have in common, as in the family `zeros of bias`.
ZEROS, ONE_NUMBER, LARGE, EQUAL_COLUMNS, COUNTING = "zeros", "one number", "large", "equal columns", "counting"
#: The standard deviation of large numbers, beyond what an author takes for the end of a function: exp of float32
#: overflows at 88.7, and a softplus is its argument from 20 on. At least so many times the usual one.
_LARGE, _LARGER = 128.0, 8.0


@dataclass(frozen=True)
class TensorArg:
    """A named tensor of an operator.

    `shape` has one expression for each dimension. `scale` is an expression too: the standard deviation of ordinary test
    values, chosen so that the operator is neither linear nor saturated there. `blocks` has one tuple for each dimension
    with the (name, length) pairs of its parts, so that a report can say which part is wrong. `optional`: None may be
    passed in place of the tensor. `any_rank`: calls with more or fewer leading dimensions are right too.

    `dtype` is for a tensor that has its own whatever the call's dtype is: labels, indices, masks. Those of integer or
    boolean dtypes are not differentiable. Their ordinary values are the integers from `low` up to, but without, `high`;
    both are expressions over the sizes. `uniform`: the ordinary values of real numbers are uniform in this range, for
    an operator that has no result outside, such as a logarithm. `whole`: they are whole numbers of the range, for truth
    values and counts that are kept as real numbers; they are not differentiable, and no family of values changes them.

    `offsets`: the elements are where the parts of a packed tensor begin, and where the last part ends. They do not
    fall, the first is `low` and the last is `high`; a part may be empty. No layout changes their values.

    An output of integers or truth values, such as an index or a mask, is *discrete*: it is compared exactly, where
    rounding does not decide what it is, and it has no cotangent. `wide`: an output of real numbers that is float32 in
    calls of a half type, such as a scale or a statistic, and of the call's dtype in all others.
    """

    name: str
    shape: tuple[str, ...]
    differentiable: bool = True
    scale: str = "1"
    blocks: tuple[tuple[tuple[str, str], ...], ...] = ()
    optional: bool = False
    any_rank: bool = False
    dtype: torch.dtype | None = None
    low: str = "0"
    high: str = "2"
    uniform: bool = False
    whole: bool = False
    offsets: bool = False
    wide: bool = False
    #: `shape` as functions, stored here so that torch.compile can trace `shape_for`.
    _dimensions: tuple[Formula, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_dimensions", tuple(_formula(expression) for expression in self.shape))
        if not self.is_floating and self.differentiable:
            raise ValueError(
                f"{self.name} was differentiable, but should not be, with dtype {self.dtype}: pass differentiable=False"
            )
        if self.whole and not (self.is_floating and self.uniform and not self.differentiable):
            raise ValueError(
                f"{self.name} was whole, but should be then of real numbers, uniform, and not differentiable: pass "
                "uniform=True, differentiable=False"
            )
        if self.offsets and (self.is_floating or len(self.shape) != 1):
            raise ValueError(
                f"{self.name} was of dtype {self.dtype} and shape {self.rule()}, but offsets should be integers of one "
                "dimension"
            )
        if self.wide and self.dtype is not None:
            raise ValueError(f"{self.name} was wide and of dtype {self.dtype}, but should be one of the two")

    @property
    def is_floating(self) -> bool:
        """Whether its elements are real numbers, not integers or truth values."""
        return self.dtype is None or self.dtype.is_floating_point

    def dtype_in(self, dtype: torch.dtype) -> torch.dtype:
        """The dtype that the tensor has in a call of `dtype`."""
        return torch.promote_types(dtype, torch.float32) if self.wide else self.dtype or dtype

    def cast(self, values: Tensor, dtype: torch.dtype) -> Tensor:
        """The values in the dtype that the tensor has in a call of `dtype`."""
        return values.to(self.dtype_in(dtype))

    @property
    def row_dim(self) -> int | None:
        """The dimension along which the rows of the batch lie; None for a tensor that all rows share."""
        return self.shape.index("batch") if "batch" in self.shape else None

    def shape_for(self, sizes: Sizes) -> Shape:
        """The shape in numbers; symbolic where `sizes` are."""
        lengths = (dimension(sizes) for dimension in self._dimensions)
        # int() would fix a symbolic size, as torch.export has them, to its current value.
        return tuple(int(length) if isinstance(length, float) else length for length in lengths)

    def ordinary(self, sizes: Sizes, draw: Draw) -> Tensor:
        """Gaussian, uniform or whole values (float64), or integers of the range or offsets (int64)."""
        if self.whole:
            low, high = (int(evaluate(bound, sizes)) for bound in (self.low, self.high))
            return draw.integers(self.shape_for(sizes), low, high).double()
        if self.uniform:
            return draw.uniform(self.shape_for(sizes), evaluate(self.low, sizes), evaluate(self.high, sizes))
        if self.is_floating:
            return draw.normal(self.shape_for(sizes), evaluate(self.scale, sizes))
        low, high = (int(evaluate(bound, sizes)) for bound in (self.low, self.high))
        if self.offsets:
            return draw.offsets(self.shape_for(sizes)[0], low, high)
        return draw.integers(self.shape_for(sizes), low, high)

    def commonly(self) -> tuple[str, ...]:
        """What all its values may have in common; nothing in particular for offsets."""
        if not self.is_floating:
            return () if self.offsets else (ONE_NUMBER,) if self.dtype == torch.bool else (ONE_NUMBER, COUNTING)
        kinds = (ZEROS, ONE_NUMBER) if self.shape else (ZEROS,)
        large = () if self.uniform or self.whole else (LARGE,)
        return (*kinds, *large, *((EQUAL_COLUMNS,) if len(self.shape) > 1 else ()))

    def in_common(self, kind: str, values: Tensor, sizes: Sizes) -> Tensor:
        """The values, changed so that they have this in common: the range that they have stays theirs."""
        if not values.numel():
            return values
        low, high = (evaluate(bound, sizes) for bound in (self.low, self.high))
        if kind == ZEROS:
            return torch.full_like(values, low) if self.uniform and low > 0 else torch.zeros_like(values)
        if kind == COUNTING:
            span = max(int(high) - int(low), 1)
            return (torch.arange(values.numel()) % span).sort().values.reshape(values.shape) + int(low)
        if self.dtype == torch.bool:
            return torch.ones_like(values)
        if kind == LARGE:
            return values * max(_LARGE / evaluate(self.scale, sizes), _LARGER)
        return (values[..., :1] if kind == EQUAL_COLUMNS else values.flatten()[0]).expand(values.shape).clone()

    def blocks_of(self, dim: int, sizes: Sizes) -> tuple[tuple[str, int, int], ...]:
        """(name, begin, end) of each named part of dimension `dim`; empty if it has none."""
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
        """Elements that are each one of `values`, with equal probability."""
        index = torch.randint(len(values), shape, generator=self._generator)
        return torch.tensor(values, dtype=torch.float64)[index]

    def integers(self, shape: Shape, low: int, high: int) -> Tensor:
        """Integers (int64) from `low` up to, but without, `high`. Raises ValueError if there are none."""
        if high <= low and 0 not in shape:
            raise ValueError(f"high was {high}, but should be above low, {low}, for a tensor of shape {shape}")
        return torch.randint(low, max(high, low + 1), shape, generator=self._generator)

    def offsets(self, count: int, low: int, high: int) -> Tensor:
        """`count` integers (int64) that do not fall, from `low` to `high`. Raises ValueError for fewer than 2."""
        if count < 2:
            raise ValueError(f"count was {count}, but should be 2 or more: the first and the last offset")
        between = self.integers((count - 2,), low, high + 1).sort().values
        return torch.cat([torch.tensor([low]), between, torch.tensor([high])])

    def uniform(self, shape: Shape, low: float, high: float) -> Tensor:
        """Values uniform in [low, high)."""
        return torch.rand(shape, generator=self._generator, dtype=torch.float64) * (high - low) + low


#: Value families that every operator has: ordinary numbers, and the same with one sign.
NORMAL, POSITIVE, NEGATIVE = "normal", "positive", "negative"
ONE_SIGN = (POSITIVE, NEGATIVE)

#: Rules of an operator under torch.autocast.
LOWER, FLOAT32 = "lower", "float32"

#: The phases of a call, which are timed separately.
FORWARD, BACKWARD, FORWARD_AND_BACKWARD = PHASES = ("forward", "backward", "forward+backward")


@dataclass(frozen=True)
class Cost:
    """The least work that a phase takes: bytes between memory and processor, and floating-point operations in products.

    `between` is the number of bytes that are moved besides the products if each product is a call of its own.
    """

    bytes: int
    flops: int
    between: int = 0


@dataclass(frozen=True)
class Case:
    """Named sizes, with their origin. Tests and benchmarks share them.

    `tags`: the sizes property runs "size" cases; everything that differentiates numerically runs "small" ones;
    "benchmark" ones are timed; "large" ones need tens of gigabytes and an accelerator, "largest" ones more than an
    implementation may have that keeps every step; "model" ones have the sizes of a named model, and their origin names
    its file. "block" and "grid" beside "size" say what the case tests. On a device that forms no blocks and grids of
    threads, the sizes property leaves out "block" cases and runs "grid" cases in one dtype.
    """

    name: str
    sizes: Sizes
    origin: str
    tags: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Family:
    """A way to choose input values: `make(sizes, draw, dtype)` returns one tensor for each input name.

    It is a float64 one, or an int64 one for an input of integers or truth values. `dtype` is the dtype in which the
    candidate gets the values, for families at the limits of its range.
    """

    name: str
    purpose: str
    make: Callable[[Sizes, Draw, torch.dtype], dict[str, Tensor]]
    #: Whether a layout may repeat the first element of a tensor beside these values.
    repeats: bool = True


@dataclass(frozen=True)
class Invariant:
    """A closed form of some outputs at inputs made for it. It can be checked without a reference.

    `make(sizes, draw, dtype)` returns the inputs, as a family does. `outputs(*inputs)` returns by name the outputs that
    the invariant is about. `bitwise`: these values are exact in every dtype, so only equal bits are right.
    """

    name: str
    claim: str
    make: Callable[[Sizes, Draw, torch.dtype], dict[str, Tensor]]
    outputs: Callable[..., dict[str, Tensor]]
    bitwise: bool = False


@dataclass(frozen=True)
class Refusal:
    """A call that must raise although each tensor alone is right, for example because an attribute does not fit.

    `call(function, *inputs)` makes the wrong call from the tensors of a right one. The error must name `argument`, and
    must match the patterns in `tells`: what it was, what it should be.
    """

    what: str
    argument: str
    call: Callable[..., Any]
    tells: tuple[str, ...] = ()


@dataclass(frozen=True)
class Operator:
    """The contract of one operator.

    `forward(*inputs)` is the reference, in plain torch, for any floating dtype; it is evaluated in float64.
    `vjp(inputs, cotangents)` is the gradient in closed form, one tensor for each input; for one that is not
    differentiable, any tensor, such as an empty one. There is a cotangent for each output of real numbers. If all
    outputs are discrete, there is no gradient: no input is differentiable, and `vjp` is not called.
    `both(inputs, cotangents)` returns what `forward` and `vjp` return, for a contract that computes both at once.
    `saved` names the tensors that autograd keeps of the reference for backward, besides inputs and outputs. It is
    the measure of what an implementation may keep. If it is empty, the contract says nothing about it.
    `intermediates(*inputs)` returns the named steps in between, in the order in which they are computed.
    `unspecified(inputs, cotangents)` is for a contract that leaves a derivative open. It is `vjp` with NaN in place of
    that derivative: a gradient may have any value where the two differ.
    `invariants` hold without a reference. `recurrent` has (output, input) pairs: what one step returns and the next one
    takes. `sequential` has the size symbols over which the reference loops: its time is proportional to them.

    What is judged is a function of tensors. An operator may also take attributes, tensors of any rank, or None for a
    tensor. It then comes in several forms. Each form is a contract of its own, named by `form`;
    `call(function, *tensors)` calls an implementation as this form does. The first form is the operator itself, and
    `forms` holds the others. A property holds if it holds in every form. `refusals` are wrong calls that cannot be made
    by changing one tensor.

    `autocast` is the rule under torch.autocast. `LOWER`: all floating tensors except float64 ones are cast to
    autocast's dtype and the call is one in that dtype, as for a matrix product. `FLOAT32`: they are cast to float32, as
    for a normalisation. If it is empty, the contract has no rule, and autocast is not judged.

    `flops` counts the multiplications and additions in the matrix products of forward and of backward, as expressions
    over the sizes. Pointwise operations are not counted: the bytes that they read and write take longer. `elementwise`
    is the least number of elements that forward and backward read and write besides those products if each product is a
    call of its own. It is 0 if there are none, or if the contract does not state them.
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
    #: The dtypes in which implementations are judged.
    dtypes: tuple[torch.dtype, ...] = DTYPES
    both: Callable[[tuple[Tensor, ...], tuple[Tensor, ...]], tuple[tuple[Tensor, ...], tuple[Tensor, ...]]] | None = (
        None
    )
    #: What `both` returns if attributes are numbers of float32, as a kernel may hold them; for dtypes up to float32.
    narrow: Callable[[tuple[Tensor, ...], tuple[Tensor, ...]], tuple[tuple[Tensor, ...], tuple[Tensor, ...]]] | None = (
        None
    )
    #: What `both` returns if some operations are made of others; None where none is. An element that is not finite in
    #: this, in the dtype of the call, is undecided.
    by_steps: (
        Callable[[tuple[Tensor, ...], tuple[Tensor, ...]], tuple[tuple[Tensor, ...], tuple[Tensor, ...]] | None] | None
    ) = None
    #: Whether the contract is derived from a reference function, whose formula is one of many. A result that is
    #: infinite may be NaN then: x + w (y - x), say, for (1 - w) x + w y. What is NaN since an input is infinite may be
    #: a number. A gradient that is not finite may have any value: NaN times 0 is NaN, and a mask makes it 0.
    by_reference: bool = False
    #: Whether the gradient is the derivative. That of a straight-through or a surrogate estimator is another one.
    is_derivative: bool = True
    #: Whether the reference rounds to whole numbers, so that a result may move by a step: see `spec.steps`.
    has_steps: bool = False

    def __post_init__(self) -> None:
        if self.autocast not in ("", LOWER, FLOAT32):
            raise ValueError(
                f"autocast of {self.name} was {self.autocast!r}, but should be '', {LOWER!r} or {FLOAT32!r}"
            )
        names = [form.form for form in self.every_form()]
        if len(set(names)) < len(names) or any(form.name != self.name or form.forms for form in self.forms):
            raise ValueError(f"the forms of {self.name} were {names}, but should have its name and differ in `form`")
        differentiable = [arg.name for arg in self.inputs if arg.differentiable]
        if self.outputs and not self.real_outputs and differentiable:
            raise ValueError(
                f"{', '.join(differentiable)} of {self.name} should not be differentiable, since no output is of real "
                "numbers: pass differentiable=False"
            )

    @property
    def real_outputs(self) -> tuple[TensorArg, ...]:
        """The outputs of real numbers, which have cotangents; the others are discrete."""
        return tuple(arg for arg in self.outputs if arg.is_floating)

    @property
    def has_gradient(self) -> bool:
        """Whether any input is differentiable."""
        return any(arg.differentiable for arg in self.inputs)

    @property
    def title(self) -> str:
        """`lltm`, or `layer_norm[vector]` where there are several forms."""
        return f"{self.name}[{self.form}]" if self.form else self.name

    def every_form(self) -> tuple[Operator, ...]:
        """All forms of the operator, this one first."""
        return (self, *self.forms)

    def in_form(self, name: str) -> Operator:
        """The form of that name. Raises KeyError with the known names."""
        for form in self.every_form():
            if form.form == name:
                return form
        raise KeyError(f"{self.name} has no form {name!r}; it has {', '.join(f.form for f in self.every_form())}")

    def without(self, forms: Collection[str]) -> Operator:
        """The operator in its other forms. Raises ValueError for a form that there is not, and if none is left."""
        every = self.every_form()
        unknown = set(forms) - {form.form for form in every}
        left = [form for form in every if form.form not in forms]
        if unknown or not left:
            raise ValueError(
                f"the forms to leave out of {self.name} were {', '.join(forms)}, but should be some of "
                f"{', '.join(form.form for form in every)}, and not all"
            )
        return replace(left[0], forms=tuple(left[1:]))

    def evaluated(
        self, inputs: tuple[Tensor, ...], cotangents: tuple[Tensor, ...]
    ) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
        """The outputs and the gradients of the reference."""
        if self.both is not None:
            return self.both(inputs, cotangents)
        return self.forward(*inputs), self.vjp(inputs, cotangents)

    def bound(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """An implementation as a function of this form's tensors only."""
        return function if self.call is None else partial(self.call, function)

    @property
    def signature(self) -> str:
        """`lltm(input, weights, ...) -> (new_h, new_cell)`."""
        inputs = ", ".join(arg.name for arg in self.inputs)
        return f"{self.name}({inputs}) -> ({', '.join(arg.name for arg in self.outputs)})"

    def symbols(self) -> tuple[str, ...]:
        """The size symbols, in order of first appearance."""
        return _symbols(tuple(expression for arg in (*self.inputs, *self.outputs) for expression in arg.shape))

    def cost(self, phase: str, sizes: Sizes, itemsize: int) -> Cost:
        """A lower bound for any implementation, for elements of `itemsize` bytes: the roofline of a phase.

        Forward reads every input and writes every output once. Backward reads inputs and cotangents and writes the
        gradients. What an implementation saves in between is its own choice and is not counted. Raises ValueError for
        an unknown phase.
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
        """The case of that name. Raises KeyError with the known names."""
        for case in self.cases:
            if case.name == name:
                return case
        raise KeyError(f"{self.name} has no case {name!r}; it has {', '.join(c.name for c in self.cases)}")

    def family(self, name: str) -> Family:
        """The value family of that name; some exist for every operator. Raises KeyError with the names."""
        if name == NORMAL:
            return Family(NORMAL, "ordinary values", lambda sizes, draw, _: self.ordinary(sizes, draw))
        for family in (*self.families, *self.of_one_sign(), *self.of_one_tensor()):
            if family.name == name:
                return family
        known = ", ".join((NORMAL, *(family.name for family in self.families), *ONE_SIGN, f"{ZEROS} of a tensor"))
        raise KeyError(f"{self.name} has no value family {name!r}; it has {known}")

    def of_one_sign(self) -> tuple[Family, Family]:
        """Ordinary numbers, all positive or all negative, but for those of a range and for integers."""

        def family(name: str, sign: int) -> Family:
            def make(sizes: Sizes, draw: Draw, _: torch.dtype) -> dict[str, Tensor]:
                drawn = self.ordinary(sizes, draw)
                free = {arg.name for arg in self.inputs if arg.is_floating and not arg.uniform}
                return {each: sign * values.abs() if each in free else values for each, values in drawn.items()}

            return Family(name, f"every number is {name}", make)

        return family(POSITIVE, 1), family(NEGATIVE, -1)

    def of_one_tensor(self) -> tuple[Family, ...]:
        """For each input: its values have something in common, and those of the other inputs are ordinary."""

        def family(arg: TensorArg, kind: str) -> Family:
            def make(sizes: Sizes, draw: Draw, _: torch.dtype) -> dict[str, Tensor]:
                drawn = self.ordinary(sizes, draw)
                return {**drawn, arg.name: arg.in_common(kind, drawn[arg.name], sizes)}

            return Family(f"{kind} of {arg.name}", f"{arg.name} alone has unusual values: {kind}", make)

        return tuple(family(arg, kind) for arg in self.inputs for kind in arg.commonly())

    def moved(self, inputs: Sequence[Tensor], step: float, draw: Draw) -> tuple[Tensor, ...]:
        """The inputs, each real number by another part of `step`, relative to itself and to `step`; not whole ones."""
        return tuple(
            x + step * draw.uniform(tuple(x.shape), 0.5, 1.5) * (x.abs() + abs(step))
            if arg.is_floating and not arg.whole
            else x
            for arg, x in zip(self.inputs, inputs, strict=True)
        )

    def ordinary(self, sizes: Sizes, draw: Draw) -> dict[str, Tensor]:
        """Gaussian inputs, each with the scale of its `TensorArg`; integers and truth values (int64) in its range."""
        return {arg.name: arg.ordinary(sizes, draw) for arg in self.inputs}
