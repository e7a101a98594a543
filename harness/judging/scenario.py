"""One concrete call of an operator: sizes, values, memory layouts, cotangents, and which gradients are wanted.

A `Scenario` is a small frozen value that says everything about the call except the dtype and the device. `realise`
turns it into tensors, the same ones each time. So the oracle can be computed where no candidate can reach it, and a
failure can be reported, shrunk and replayed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod

import torch
from torch import Tensor

from harness.errors import NotTaken
from harness.judging.by_identity import ByIdentity
from spec.contract import Case, Draw, Operator, Shape, TensorArg

#: Ways to lay out the same values in memory. The memory around the values holds NaN, so that a wrong address shows.
#: Two repeat what is first: `expanded` along the first dimension, with stride 0, `repeated` along that of the batch, in
#: memory of its own.
LAYOUTS = ("contiguous", "transposed", "strided", "padded", "offset", "expanded", "repeated")
#: Kinds of cotangent that repeat numbers, for which a backward may have a shorter way.
REPEATED = ("scaled", "rows", "columns", "inner")
#: Kinds of cotangent. Some are expanded with stride 0: `ones` is what `.sum().backward()` sends, `scaled` what a number
#: times the sum sends, `rows` one row for all rows, `columns` one number for each row, `inner` what the mean over all
#: dimensions but the first and the last sends. With `missing`, the loss does not use the output.
COTANGENTS = ("normal", "ones", *REPEATED, "transposed", "strided", "offset", "zero", "missing")
#: The kinds that change the values; the others place the same values elsewhere in memory.
CHANGING = frozenset({"expanded", "repeated", "ones", *REPEATED, "zero", "missing"})
#: The value of a `scaled` cotangent, a number of every dtype, and that of odd seeds beside ordinary values, beyond what
#: a cotangent may be limited to. Beside huge values its product with them would overflow, which no contract forbids.
SCALE, LARGE_SCALE = 0.375, 768.0

_COTANGENT_SEED = 1_000_003
#: So many calls are kept as they were drawn, since properties make one in many ways; not those of more elements.
_KEPT, _KEPT_ELEMENTS = 8, 2**20


def layouts_of(arg: TensorArg) -> tuple[str, ...]:
    """The layouts in which a call may pass this tensor: repeated offsets are no offsets."""
    return tuple(layout for layout in LAYOUTS if not (arg.offsets and layout in CHANGING))


def kinds_of(arg: TensorArg) -> tuple[str, ...]:
    """The kinds of cotangent of this output: one with fewer than three dimensions has none between first and last."""
    return tuple(kind for kind in COTANGENTS if kind != "inner" or len(arg.shape) > 2)


@dataclass(frozen=True)
class Scenario:
    """One call. `layouts` and `cotangents` name only what is not "contiguous" and "normal".

    `wanted` are the inputs whose gradient is wanted; None means every differentiable one.
    """

    sizes: tuple[tuple[str, int], ...]
    name: str = ""
    seed: int = 0
    values: str = "normal"
    layouts: tuple[tuple[str, str], ...] = ()
    cotangents: tuple[tuple[str, str], ...] = ()
    wanted: tuple[str, ...] | None = None

    @classmethod
    def of(cls, case: Case, **changes: object) -> Scenario:
        """The case with ordinary values, or with `changes` to the other fields."""
        return replace(cls(sizes=tuple(case.sizes.items()), name=case.name), **changes)  # type: ignore[arg-type]

    def wanted_by(self, operator: Operator) -> tuple[str, ...]:
        """Names of the inputs whose gradient is wanted."""
        if self.wanted is not None:
            return self.wanted
        return tuple(arg.name for arg in operator.inputs if arg.differentiable)

    def layouts_in(self, operator: Operator) -> tuple[tuple[str, str], ...]:
        """The layouts without those that repeat elements, if the values are of a family that does not allow them."""
        if operator.family(self.values).repeats:
            return self.layouts
        return tuple((name, layout) for name, layout in self.layouts if layout not in CHANGING)

    def describe(self, operator: Operator) -> str:
        """`lltm(state-33: batch=3, input_features=5, state_size=33; bias strided)`: the sizes and what is unusual."""
        parts = [", ".join(f"{symbol}={size}" for symbol, size in self.sizes)]
        parts += [f"values {self.values}"] if self.values != "normal" else []
        parts += [f"{name} {layout}" for name, layout in self.layouts_in(operator) if layout != "contiguous"]
        parts += [f"cotangent of {name} {kind}" for name, kind in self.cotangents if kind != "normal"]
        if self.wanted is not None:
            parts += [f"only {', '.join(self.wanted)} require grad" if self.wanted else "nothing requires grad"]
        parts += [f"seed {self.seed}"] if self.seed else []
        return f"{operator.title}({self.name + ': ' if self.name else ''}{'; '.join(parts)})"


@dataclass(frozen=True)
class Call:
    """The tensors of one call. A cotangent of None belongs to an output that the loss does not use, or is discrete."""

    inputs: tuple[Tensor, ...]
    cotangents: tuple[Tensor | None, ...]

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """All inputs, then the cotangents that exist."""
        return *self.inputs, *(g for g in self.cotangents if g is not None)

    def used(self, outputs: Sequence[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
        """The outputs that have a cotangent, and these."""
        pairs = [(y, g) for y, g in zip(outputs, self.cotangents, strict=True) if g is not None]
        return [y for y, _ in pairs], [g for _, g in pairs]

    def of(self, tensors: Iterator[Tensor]) -> Call:
        """The same call with the next of `tensors` in place of its own, in the order of `self.tensors`."""
        inputs = tuple(next(tensors) for _ in self.inputs)
        return Call(inputs, tuple(g if g is None else next(tensors) for g in self.cotangents))

    def to_float64(self) -> Call:
        """The same values, contiguous on the CPU, real numbers in float64; a missing cotangent stays missing."""
        return self.of(_exact(tensor) for tensor in self.tensors)


def _exact(tensor: Tensor) -> Tensor:
    dtype = torch.float64 if tensor.is_floating_point() else tensor.dtype
    return tensor.detach().cpu().to(dtype).contiguous().clone()


def _surround(shape: Shape, like: Tensor, around: float) -> Tensor:
    """Memory that holds `around`; for integers, which may be indices, the value of `like` that is found last."""
    if not like.is_floating_point():
        return like.flatten()[-1:].sum().to(like.dtype).expand(shape).contiguous()
    return torch.full(shape, around, dtype=like.dtype, device=like.device)


def lay_out(values: Tensor, layout: str, around: float = float("nan"), rows: int = 0) -> Tensor:
    """`values` in another memory layout. `expanded` repeats row 0 with stride 0, `repeated` in memory of its own.

    These two change the values. `repeated` is of the dimension `rows`.
    `around` is what memory holds around the values. `transposed` needs two dimensions and `expanded` one; with fewer,
    the tensor is returned unchanged.
    """
    match layout:
        case "transposed" if values.dim() >= 2:
            return values.transpose(-1, -2).contiguous().transpose(-1, -2)
        case "strided" if values.dim() >= 1:
            buffer = _surround((*values.shape[:-1], 2 * values.shape[-1] + 1), values, around)
            view = buffer[..., 1::2]
        case "padded" if values.dim() >= 1:
            buffer = _surround((*values.shape[:-1], values.shape[-1] + 3), values, around)
            view = buffer[..., : values.shape[-1]]
        case "offset":
            buffer = _surround((values.numel() + 1,), values, around)
            view = buffer[1:].view(values.shape)
        case "expanded" if values.dim() >= 1 and values.shape[0] > 0:
            return values[:1].clone().expand(values.shape)
        case "repeated" if values.dim() >= 1 and values.shape[rows] > 0:
            return values.narrow(rows, 0, 1).expand(values.shape).contiguous()
        case _:
            return values.clone(memory_format=torch.contiguous_format)
    view.copy_(values)
    return view


def realise(
    operator: Operator,
    scenario: Scenario,
    dtype: torch.dtype,
    device: str | torch.device = "cpu",
    around: float = float("nan"),
) -> Call:
    """The tensors of a scenario: the same values on every device, every time. `around` as for `lay_out`."""
    layouts, kinds = dict(scenario.layouts_in(operator)), dict(scenario.cotangents)
    values, cotangent_values = _drawn(operator, scenario, dtype)
    inputs = tuple(
        lay_out(value.to(device), layouts.get(arg.name, LAYOUTS[0]), around, arg.row_dim or 0)
        for arg, value in zip(operator.inputs, values, strict=True)
    )
    scale = LARGE_SCALE if scenario.seed % 2 and scenario.values == "normal" else SCALE
    cotangents = tuple(
        None if value is None else _cotangent(value.to(device), kinds.get(arg.name, "normal"), scale, around)
        for arg, value in zip(operator.outputs, cotangent_values, strict=True)
    )
    return Call(inputs, cotangents)


_Values = tuple[tuple[Tensor, ...], tuple[Tensor | None, ...]]


def _drawn(operator: Operator, scenario: Scenario, dtype: torch.dtype) -> _Values:
    """The values of inputs and cotangents on the CPU, to be copied: they may be those that the next call gets.

    Raises NotTaken for sizes at which a result of a derived contract would have a negative length.
    """
    sizes = dict(scenario.sizes)
    shapes = [(arg.name, arg.shape_for(sizes)) for arg in (*operator.inputs, *operator.outputs)]
    for name, shape in shapes[len(operator.inputs) :] if operator.by_reference else ():
        if min(shape, default=0) < 0:
            told = ", ".join(f"{symbol}={size}" for symbol, size in scenario.sizes)
            raise NotTaken(f"{name} would be of shape {shape} for {told}, so that nothing can be asked")
    elements = sum(prod(shape) for _, shape in shapes)
    draw = _values if elements > _KEPT_ELEMENTS or torch.is_inference_mode_enabled() else _kept_values
    return draw(ByIdentity(operator), scenario.sizes, scenario.values, scenario.seed, dtype)


def _values(key: ByIdentity, sizes: tuple[tuple[str, int], ...], family: str, seed: int, dtype: torch.dtype) -> _Values:
    operator, named = key.operator, dict(sizes)
    values = operator.family(family).make(named, Draw(seed), dtype)
    draw = Draw(seed + _COTANGENT_SEED)
    return tuple(arg.cast(values[arg.name], dtype) for arg in operator.inputs), tuple(
        arg.cast(draw.normal(arg.shape_for(named)), dtype) if arg.is_floating else None for arg in operator.outputs
    )


_kept_values = lru_cache(maxsize=_KEPT)(_values)


def _cotangent(values: Tensor, kind: str, scale: float, around: float) -> Tensor | None:
    match kind:
        case "missing":
            return None
        case "zero":
            return torch.zeros_like(values)
        case "ones" | "scaled":
            number = 1.0 if kind == "ones" else scale
            return torch.full((), number, dtype=values.dtype, device=values.device).expand(values.shape)
        case "rows" if values.dim() >= 1:
            return values[:1].clone().expand(values.shape)
        case "columns" if values.dim() >= 1:
            return values[..., :1].clone().expand(values.shape)
        case "inner" if values.dim() > 2:
            inner = range(1, values.dim() - 1)
            return values[(slice(None), *(slice(1) for _ in inner))].clone().expand(values.shape)
        case "normal":
            return values.clone()
    return lay_out(values, kind, around)
