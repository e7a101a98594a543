"""What an author tests before a path of its own: sizes, layouts, values, modes, subsets; and a call where it holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from random import Random

from spec.contract import TensorArg
from tests.zoo.thresholds.drawn import GRAD, INFERENCE, NO_GRAD
from tests.zoo.thresholds.every.form import Form, Length
from tests.zoo.thresholds.variant import a_block, beyond, log_uniform

VECTORS = (2, 3, 4, 4, 8, 8, 16, 16, 24, 32, 64)
RATIOS = (Fraction(1), Fraction(2), Fraction(3), Fraction(1, 2), Fraction(4))
#: How an author tells a layout from another, of a tensor of any number of dimensions.
LAYOUTS = {
    "offset": "{name}.storage_offset() % 4 == 1 and {name}.is_contiguous()",
    "strided": "{name}.stride(-1) == 2",
    "expanded": "{name}.shape[0] > 1 and {name}.stride(0) == 0",
    "padded": "{name}.stride(-2) > {name}.shape[-1] > 1 and {name}.stride(-1) == 1",
    "transposed": "{name}.stride(-2) == 1 and {name}.stride(-1) == {name}.shape[-2] > 1 < {name}.shape[-1]",
}
_OF_MATRICES = ("padded", "transposed")
_MODES = {NO_GRAD: "not torch.is_grad_enabled()", INFERENCE: "torch.is_inference_mode_enabled()"}


@dataclass(frozen=True)
class Condition:
    """A test in the source, the same in words, and what a call must have for it to hold."""

    test: str
    words: str
    sizes: Mapping[str, int] = field(default_factory=dict)
    layouts: Mapping[str, str] = field(default_factory=dict)
    values: tuple[tuple[str, str, float], ...] = ()
    mode: str = GRAD
    wanted: tuple[str, ...] | None = None

    def __and__(self, other: Condition) -> Condition:
        return Condition(
            " and ".join(filter(None, (self.test, other.test))),
            ", ".join(filter(None, (self.words, other.words))),
            {**self.sizes, **other.sizes},
            {**self.layouts, **other.layouts},
            (*self.values, *other.values),
            self.mode if other.mode == GRAD else other.mode,
            self.wanted if other.wanted is None else other.wanted,
        )


@dataclass(frozen=True)
class Sized:
    """A condition on a length, and its constants: what is left over is the rest behind whole blocks."""

    condition: Condition
    block: int = 1


def a_length(rng: Random, form: Form, *names: str, leading: bool | None = None) -> Length:
    """A dimension that a size decides: of these tensors or of any, and the first one or another one if that is said."""
    found = [length for length in form.lengths(*names) if not form.arg(length.name).offsets]
    wanted = [length for length in found if leading is None or (length.dim == 0) == leading]
    return rng.choice(wanted or found)


def _sized(length: Length, test: str, words: str, size: int) -> Condition:
    return Condition(test, words, {length.symbol: length.symbol_for(size)})


def from_least(rng: Random, form: Form, length: Length, low: int = 3) -> Condition:
    """From a length on."""
    least = length.of(length.symbol_for(log_uniform(rng, low, max(form.limit(length.symbol), low + 1))))
    return _sized(length, f"{length.text} >= {least}", f"from {length.text} {least} on", least)


def exactly(rng: Random, form: Form, length: Length) -> Condition:
    """At one length."""
    exact = length.of(length.symbol_for(log_uniform(rng, 2, form.limit(length.symbol))))
    return _sized(length, f"{length.text} == {exact}", f"where {length.text} is {exact}", exact)


def a_tail(rng: Random, form: Form, length: Length) -> Sized:
    """From a length on that is no multiple of a block. Raises ValueError if no length is."""
    most = form.limit(length.symbol)
    least = log_uniform(rng, 3, max(most, 4))
    block = a_block(rng, min(least, 512)) if length.dim == 0 else rng.choice(VECTORS)
    least = max(least, block)
    for _ in range(20):
        size = length.of(length.symbol_for(beyond(rng, least, block)))
        if size % block:
            words = f"from {length.text} {least} on that is no multiple of {block}"
            return Sized(_sized(length, f"{length.text} >= {least} and {length.text} % {block}", words, size), block)
    raise ValueError(f"no {length.text} is beyond a multiple of {block}")


def in_blocks(rng: Random, form: Form, length: Length) -> Condition:
    """From a length on, perhaps in multiples of a block."""
    least, block = log_uniform(rng, 2, min(form.limit(length.symbol), 800)), rng.choice((1, 1, 2, 3, 8))
    size = length.of(length.symbol_for(-(-least // block) * block))
    if block == 1 or size % block:
        return from_least(rng, form, length, 2)
    words = f"from {length.text} {least} on in multiples of {block}"
    return _sized(length, f"{length.text} >= {least} and not {length.text} % {block}", words, size)


def in_ratio(rng: Random, form: Form, one: Length, other: Length) -> Condition:
    """Where one length is a ratio of another one, from a length on. Raises ValueError if no lengths are."""
    ratio = rng.choice(RATIOS)
    least = log_uniform(rng, 3, 60)
    for size in range(least, least + 50):
        length = other.of(other.symbol_for(size))
        wanted = length * ratio
        symbol = one.symbol_for(int(wanted))
        fits = wanted.denominator == 1 and one.of(symbol) == wanted
        if fits and all(at <= form.limit(each.symbol) for at, each in ((symbol, one), (other.symbol_for(size), other))):
            left, right = (
                text if times == 1 else f"{times} * {text}"
                for times, text in ((ratio.denominator, one.text), (ratio.numerator, other.text))
            )
            words = f"where {one.text} is {ratio} {other.text}, which is {length} or more"
            sizes = {other.symbol: other.symbol_for(size), one.symbol: symbol}
            return Condition(f"{left} == {right} and {other.text} >= {length}", words, sizes)
    raise ValueError(f"{one.text} is never {ratio} {other.text}")


def a_layout(rng: Random, form: Form, name: str) -> Condition:
    """A tensor lies in memory in some way."""
    arg = form.arg(name)
    kinds = [kind for kind in LAYOUTS if len(arg.shape) > 1 or kind not in _OF_MATRICES]
    kind = rng.choice([kind for kind in kinds if not (arg.offsets and kind == "expanded")])
    return in_layout(name, kind)


def in_layout(name: str, kind: str) -> Condition:
    """The tensor lies in memory in that way."""
    return Condition(LAYOUTS[kind].format(name=name), f"where {name} is {kind}", layouts={name: kind})


def a_mode(rng: Random) -> Condition:
    """Without grad, or in inference mode."""
    mode = rng.choice(list(_MODES))
    return Condition(_MODES[mode], f"in mode {mode}", mode=mode)


def a_subset(rng: Random, form: Form, *named: str) -> Condition:
    """Some of the inputs require grad, these among them. Raises ValueError if there is one input only."""
    names = form.differentiable
    if len(names) < 2:
        raise ValueError("one tensor has no subset")
    left_out = rng.choice([name for name in names if name not in named])
    wanted = tuple(name for name in names if name in named or (name != left_out and rng.random() < 0.5))
    wanted = wanted or (next(name for name in names if name != left_out),)
    flags = tuple(name in wanted for name in names)
    test = f"({', '.join(f'{name}.requires_grad' for name in names)}) == {flags}"
    return Condition(test, f"where {', '.join(wanted)} require grad", wanted=wanted)


def of_values(rng: Random, form: Form, arg: TensorArg) -> Condition:
    """Something that is true of all values of a tensor, or of its rows."""
    name = arg.name
    if arg.offsets:
        kind, words = rng.choice((("first-empty", "has an empty part first"), ("one", "has one part")))
        test = {
            "first-empty": f"bool({name}[1] == {name}[0])",
            "one": f"bool(({name}.diff() > 0).sum() == 1)",
        }[kind]
        return Condition(test, f"where {name} {words}", values=((name, kind, 0.0),))
    if not arg.is_floating:
        return _of_integers(rng, arg)
    limit = round(rng.uniform(3.0, 60.0), 1)
    number = round(rng.uniform(-4, 4) * 16) / 16 or 1.0
    choices = [
        (f"bool(({name} > 0).all())", "is positive", ((name, "magnitude", 1.0),)),
        (f"bool(({name} < 0).all())", "is negative", ((name, "magnitude", -1.0),)),
        (f"bool(({name}.abs() > {limit}).any())", f"is beyond {limit} somewhere", ((name, "times", 20 * limit),)),
    ]
    if arg.uniform:  # the operator may have no result outside of its range
        choices, number = [], float(arg.high)
    choices += [
        (f"bool(({name} == 0).all())", "is 0", ((name, "fill", 0.0),)),
        (f"bool(({name} == {name}.flatten()[0]).all())", "is one value", ((name, "fill", number),)),
    ]
    if len(arg.shape) > 1:
        rows = f"bool(({name} == {name}[:1]).all())"
        choices.append((f"{name}.shape[0] > 1 and {rows}", "has equal rows", ((name, "rows", 0.0),)))
        choices.append((f"bool(({name} == {name}[..., :1]).all())", "has equal columns", ((name, "columns", 0.0),)))
    test, words, values = rng.choice(choices)
    return Condition(f"{name}.numel() and {test}", f"where {name} {words}", values=values)


def _of_integers(rng: Random, arg: TensorArg) -> Condition:
    name, high = arg.name, rng.choice((0.0, 1.0))
    if str(arg.dtype) == "torch.bool":
        choices = [
            (f"bool({name}.all())", "is True", "fill", 1.0),
            (f"not bool({name}.any(-1).all())", "is False in a row", "first", 0.0),
        ]
    else:
        flat = f"{name}.flatten()"
        choices = [
            (f"bool(({name} == {flat}[0]).all())", "is one number", "fill", high),
            (f"bool(({flat}.diff() >= 0).all())", "does not fall", "sort", 0.0),
            (f"{flat}.unique().numel() == {name}.numel()", "has no number twice", "distinct", 0.0),
        ]
    test, words, change, number = rng.choice(choices)
    return Condition(f"{name}.numel() and {test}", f"where {name} {words}", values=((name, change, number),))
