"""What a contract that was derived from a reference function consists of; `python -m harness contract` writes its file.

The reference is plain torch, for any floating dtype. Its gradient is that of autograd, evaluated in float64 as the
reference itself is. What a reference computes in float32 for half types is evaluated with the roundoff of float32
(`spec.casts`). In backward every step may be rounded to the dtype, since autograd does not say where a step belongs.
"""

from __future__ import annotations

import hashlib
import inspect
import math
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from spec import backward
from spec.blocks import again, any_order
from spec.by_steps import Products
from spec.casts import Casts
from spec.contract import DTYPES, Draw, Family, Operator, Sizes, TensorArg
from spec.odd_rows import Rows
from spec.python_files import import_named, import_source
from spec.shifts import Shifts

#: By how much elements are moved, relative to themselves, to see whether a gradient jumps; and by how much a gradient
#: changes then, relative to its largest element. What is smooth would have to have a condition of 10^9.
_STEP, _JUMP = 2.0**-44, 1e-4
#: How often that is tried where several elements are equal.
_DRAWS = 6


def function_of(where: str, name: str) -> Callable[..., Any]:
    """The function `name` of a Python file, or of a module that can be imported. Raises what its import raises.

    A file is imported once, under a name of its own.
    """
    if not where.endswith(".py"):
        return getattr(import_named(where), name)  # type: ignore[no-any-return]
    path = Path(where).resolve()
    module_name = f"reference_{path.stem}_{hashlib.sha256(str(path).encode()).hexdigest()[:8]}"
    if module_name not in sys.modules:
        import_source(path, module_name)
    return getattr(sys.modules[module_name], name)  # type: ignore[no-any-return]


@dataclass(frozen=True)
class Reference:
    """A reference function as a contract needs it: tensors in, a tuple of tensors out, and a vector-Jacobian product.

    `tensors` are the names of the parameters that are tensors, in the order of the contract's inputs. `attributes` have
    these values in every call, of the reference and of every implementation. `positional` are the parameters that are
    passed by position, tensors or attributes, by default the tensors; all others are passed by name.
    """

    function: Callable[..., Any]
    tensors: tuple[str, ...]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    positional: tuple[str, ...] = ()
    #: The names of real tensors of which it has no gradient, since an operation of it has none.
    constants: tuple[str, ...] = ()
    #: Whether its gradient is the same without that of the largest values that it takes: see `spec.shifts`.
    shifts: bool = False
    #: Whether the function has activations that `spec.by_steps` knows, once it has been called with it.
    _has_products: list[bool] = field(default_factory=list, compare=False, repr=False)

    def forward(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        """The outputs of the reference."""
        exact = any(tensor.dtype == torch.float64 for tensor in inputs)
        # Attention is evaluated by its formula; the fused kernels have one operation for all of it.
        shifts = Shifts() if exact and self.shifts else nullcontext()
        with sdpa_kernel(SDPBackend.MATH), Casts() if exact else nullcontext(), shifts, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what a module says about sizes that are not those of its example
            results = self.call(self.function, *inputs)
        return (results,) if isinstance(results, Tensor) else tuple(results)

    def vjp(self, inputs: tuple[Tensor, ...], cotangents: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        """The gradients of the real inputs by autograd; empty tensors for the others, and for constants.

        There is a cotangent for each real output.
        """
        return self._by_place(_by_autograd, inputs, cotangents)[1]

    def both(
        self, inputs: tuple[Tensor, ...], cotangents: tuple[Tensor, ...]
    ) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
        """The outputs, and the gradients as `vjp` returns them; under `torch.func.vmap` too."""
        return self._by_place(_by_functions, inputs, cotangents)

    def by_steps(
        self, inputs: tuple[Tensor, ...], cotangents: tuple[Tensor, ...]
    ) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]] | None:
        """What `both` returns if activations are the products of `spec.by_steps`; None if there are none."""
        if self._has_products == [False]:
            return None
        with Products() as mode:
            found = self._by_place(_by_autograd, inputs, cotangents)
        self._has_products[:] = [mode.used]
        return found if mode.used else None

    def _by_place(
        self, differentiate: Callable[..., Any], inputs: tuple[Tensor, ...], cotangents: tuple[Tensor, ...]
    ) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
        places = [
            place
            for place, tensor in enumerate(inputs)
            if tensor.is_floating_point() and self.tensors[place] not in self.constants
        ]

        def of_some(*some: Tensor) -> tuple[Tensor, ...]:
            given = dict(zip(places, some, strict=True))
            return self.forward(*(given.get(place, tensor) for place, tensor in enumerate(inputs)))

        outputs, found = differentiate(of_some, [inputs[place] for place in places], cotangents)
        gradients = dict(zip(places, found, strict=bool(cotangents)))
        nothing = inputs[0].new_empty(0, dtype=torch.float64)
        return outputs, tuple(gradients.get(place, nothing) for place in range(len(inputs)))

    def unspecified(
        self, args: tuple[TensorArg, ...], inputs: tuple[Tensor, ...], cotangents: tuple[Tensor, ...]
    ) -> tuple[Tensor, ...]:
        """NaN for each gradient that depends on a row which is not finite, or that jumps there, and 0 elsewhere.

        Whether NaN times 0 is NaN there, or a mask makes it 0, no reference says for its implementations. And of two
        equal elements, either may have the gradient of their maximum.
        """
        pairs = list(zip(args, inputs, strict=True))
        own = [(arg, tensor) for arg, tensor in pairs if arg.row_dim is not None]
        rows = Rows([arg for arg, _ in own], [tensor for _, tensor in own], lambda tensor: ~tensor.isfinite())
        marked = [
            torch.zeros(tensor.shape, dtype=torch.float64).masked_fill_(rows.of(arg, tensor), math.nan)
            for arg, tensor in pairs
        ]
        free = [x.is_floating_point() and not arg.whole for arg, x in zip(args, inputs, strict=True)]
        for mark, jumps in zip(marked, self._jumps(free, inputs, cotangents), strict=True):
            if jumps is not None:
                mark.masked_fill_(jumps, math.nan)
        return tuple(marked)

    def _jumps(
        self, free: Sequence[bool], inputs: tuple[Tensor, ...], cotangents: tuple[Tensor, ...]
    ) -> tuple[Tensor | None, ...]:
        """Where a gradient is another one if equal elements of the `free` inputs differ a little; None if nowhere.

        A gradient that is only ill-conditioned changes by far less. Zeros stay equal: a kink there is the reference's.
        """
        masks: list[Tensor | None] = [None] * len(inputs)
        for seed in range(_DRAWS):
            draw = Draw(seed)
            steps = [_STEP * draw.uniform(tuple(x.shape), -1, 1) for x in inputs]
            # Of two equal elements, one is the larger one in the first call, and the other one in the second.
            found = [
                self.vjp(
                    tuple(
                        x * (1 + sign * step) if moves else x
                        for moves, x, step in zip(free, inputs, steps, strict=True)
                    ),
                    cotangents,
                )
                for sign in (1, -1)
            ]
            masks = [_either(mask, _jump(*pair)) for mask, *pair in zip(masks, *found, strict=True)]
            if not any(mask is not None for mask in masks):
                break  # more draws are for more than two equal elements
        return tuple(masks)

    def without_shifts(self, inputs: tuple[Tensor, ...], cotangents: tuple[Tensor, ...]) -> tuple[Tensor, ...] | None:
        """What `vjp` returns if the largest of some values have no gradient; None if no largest value is taken."""
        with Shifts(always=True) as mode:
            found = self.vjp(inputs, cotangents)
        return found if mode.used else None

    def in_float32(self) -> Reference | None:
        """The same with attributes as float32 holds them, the usual values included; None if none of them changes.

        A kernel takes 1 - beta of a beta in float32: that is 4 roundings off for 0.9.
        """
        try:
            usual = {name: each.default for name, each in inspect.signature(self.function).parameters.items()}
        except (TypeError, ValueError):  # a function without a signature that Python can read
            usual = {}
        values = {**usual, **self.attributes}
        narrow = {name: float(torch.tensor(value)) for name, value in values.items() if isinstance(value, float)}
        changed = {name: value for name, value in narrow.items() if math.isfinite(value) and value != values[name]}
        return replace(self, attributes={**self.attributes, **changed}) if changed else None

    def call(self, function: Callable[..., Any], *inputs: Tensor) -> Any:
        """Call the reference, or an implementation, as the contract does."""
        if not self.positional:
            return function(*inputs, **self.attributes)
        given = {**dict(zip(self.tensors, inputs, strict=True)), **self.attributes}
        named = {name: value for name, value in given.items() if name not in self.positional}
        return function(*(given[name] for name in self.positional), **named)

    def operator(
        self,
        name: str,
        inputs: tuple[TensorArg, ...],
        outputs: tuple[TensorArg, ...],
        cases: tuple[Any, ...],
        families: Sequence[str] = (),
        dtypes: tuple[torch.dtype, ...] = DTYPES,
        unrepeated: Sequence[str] = (),
        is_derivative: bool = True,
        has_steps: bool = False,
    ) -> Operator:
        """The contract, with these value families of `FAMILIES`; no element is repeated beside the `unrepeated`."""
        narrow = self.in_float32()
        found = Operator(
            name=name,
            inputs=inputs,
            outputs=outputs,
            forward=self.forward,
            vjp=self.vjp,
            both=self.both,
            intermediates=lambda *_: {},
            cases=cases,
            unspecified=partial(self.unspecified, inputs),
            call=self.call,
            dtypes=dtypes,
            narrow=narrow.both if narrow is not None else None,
            by_reference=True,
            by_steps=self.by_steps,
            is_derivative=is_derivative,
            has_steps=has_steps,
        )
        made = tuple(
            Family(family, FAMILIES[family].purpose, FAMILIES[family].of(found), family not in unrepeated)
            for family in families
        )
        object.__setattr__(found, "families", made)
        return found


def _jump(one: Tensor, other: Tensor) -> Tensor | None:
    """Where two gradients are not nearly equal; None if nowhere."""
    if not one.numel():
        return None
    mask = (one - other).abs() > _JUMP * one.abs().nan_to_num(0, 0, 0).amax()
    return mask if bool(mask.any()) else None


def _either(one: Tensor | None, other: Tensor | None) -> Tensor | None:
    return other if one is None else one if other is None else one | other


def _by_functions(
    function: Callable[..., tuple[Tensor, ...]], inputs: Sequence[Tensor], cotangents: tuple[Tensor, ...]
) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
    """The outputs and the gradients by torch.func, which vmap maps.

    The function that `torch.func.vjp` returns would import torch's compiler, which takes more than a second. So the
    gradients are taken inside of the function that it is given.
    """
    if not cotangents:
        return function(*inputs), ()

    def real_and_all(*given: Tensor) -> tuple[tuple[Tensor, ...], tuple[tuple[Tensor, ...], tuple[Tensor, ...]]]:
        with again():
            outputs = function(*given)
        real = tuple(y for y in outputs if y.is_floating_point())
        return real, (outputs, _gradients(real, given, cotangents))

    try:
        made: Any = torch.func.vjp(real_and_all, *inputs, has_aux=True)
    except RuntimeError as error:
        if "setup_context" not in str(error):
            raise
        return _by_autograd(function, inputs, cotangents)
    outputs, gradients = made[2]
    return outputs, gradients


def _by_autograd(
    function: Callable[..., tuple[Tensor, ...]], inputs: Sequence[Tensor], cotangents: tuple[Tensor, ...]
) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
    """The same without torch.func: it does not take an autograd.Function whose forward takes ctx."""
    if not cotangents:
        return function(*inputs), ()
    with torch.enable_grad():
        leaves = [tensor.detach().clone().requires_grad_() for tensor in inputs]
        with again():
            outputs = function(*leaves)
        gradients = _gradients([y for y in outputs if y.is_floating_point()], leaves, cotangents)
    return tuple(output.detach() for output in outputs), gradients


def _gradients(real: Sequence[Tensor], inputs: Sequence[Tensor], cotangents: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """The gradients of real outputs; zeros where no output depends on an input."""
    pairs = [(y, g) for y, g in zip(real, cotangents, strict=True) if y.requires_grad]
    with any_order():
        found = backward.gradients([y for y, _ in pairs], inputs, [g for _, g in pairs])
    return tuple(torch.zeros_like(x) if g is None else g for x, g in zip(inputs, found, strict=True))


Values = dict[str, Tensor]


@dataclass(frozen=True)
class GenericFamily:
    """A value family for any operator: `change(rows, dtype, draw)` changes a tensor with rows first, in place.

    `shared(tensor, dtype, draw)` changes a tensor that all rows share, such as weights, in place.
    """

    purpose: str
    change: Callable[[Tensor, torch.dtype, Draw], None]
    shared: Callable[[Tensor, torch.dtype, Draw], None] | None = None

    def of(self, operator: Operator) -> Callable[[Sizes, Draw, torch.dtype], Values]:
        """The family of that operator: ordinary values, with those changed that have a row for each of the batch.

        Where nothing has such rows, those of the first dimension are changed.
        """

        def make(sizes: Sizes, draw: Draw, dtype: torch.dtype) -> Values:
            values = operator.ordinary(sizes, draw)
            has_rows = any(arg.row_dim is not None for arg in operator.inputs)
            for arg in operator.inputs:
                dim = arg.row_dim if has_rows else 0
                if arg.whole:
                    continue
                if arg.is_floating and dim is not None and arg.shape:
                    self.change(values[arg.name].movedim(dim, 0), dtype, draw)
                elif arg.is_floating and self.shared is not None:
                    self.shared(values[arg.name], dtype, draw)
            return values

        return make


def _small(rows: Tensor, _: torch.dtype, __: Draw) -> None:
    rows.mul_(2.0**-10)


def _large(rows: Tensor, dtype: torch.dtype, _: Draw) -> None:
    rows.mul_(min(torch.finfo(dtype).max, 2.0**200) ** 0.5 / 16)


def _shifted(rows: Tensor, _: torch.dtype, __: Draw) -> None:
    rows.add_(8.0)


def _zero_rows(rows: Tensor, _: torch.dtype, __: Draw) -> None:
    rows[::2] = 0.0


def _equal_rows(rows: Tensor, _: torch.dtype, __: Draw) -> None:
    rows[:] = rows[:1].clone()


def _denormals(rows: Tensor, dtype: torch.dtype, draw: Draw) -> None:
    quarter = torch.finfo(dtype).tiny / 4
    rows[::2] = draw.choice(tuple(rows[::2].shape), (quarter, -quarter, 1.0))


def _one_of_each_row(rows: Tensor, _: torch.dtype, draw: Draw) -> None:
    if rows.dim() == 1:
        rows.copy_(draw.choice(tuple(rows.shape), (0.0, 1.0)))
    elif rows.numel():
        places = draw.integers((*rows.shape[:-1], 1), 0, rows.shape[-1])
        rows.zero_().scatter_(-1, places, 1.0)


def _sparse(tensor: Tensor, dtype: torch.dtype, draw: Draw) -> None:
    tensor.mul_(draw.choice(tuple(tensor.shape), (0.0, 0.0, torch.finfo(dtype).eps / 8, 1.0)))


def _non_finite(rows: Tensor, dtype: torch.dtype, _: Draw) -> None:
    # Without -inf in bfloat16: a product with AMX may multiply the tail of a row by 0 in the next one, see spec.lltm.
    values = (float("nan"), float("inf")) if dtype == torch.bfloat16 else (float("nan"), float("inf"), -float("inf"))
    for row, value in enumerate(values[: len(rows)]):
        if rows[row].numel():
            rows[(row, *(0,) * (rows.dim() - 2), row % rows.shape[-1]) if rows.dim() > 1 else row] = value


#: By name: what suits any operator whose reference is finite there, and smooth.
FAMILIES = {
    "small-values": GenericFamily("values of a thousandth, where an epsilon counts", _small),
    "large-values": GenericFamily("rows whose squares nearly overflow", _large),
    "shifted-values": GenericFamily("rows whose mean is eight deviations", _shifted),
    "zero-rows": GenericFamily("every other row 0", _zero_rows),
    "equal-rows": GenericFamily("all rows are the first one: a row must not depend on its place", _equal_rows),
    # A product of such a row and weights has one term. It is exactly 0, or not 0, whatever the order of the sum is.
    "sparse-values": GenericFamily(
        "rows of one 1, and most weights 0 or tiny: sums are exactly 0, where relu has its kink, or near it",
        _one_of_each_row,
        _sparse,
    ),
    "denormals": GenericFamily("values below the smallest normal number in every other row", _denormals),
    "non-finite": GenericFamily("inf and NaN in three rows, which must stay in their rows", _non_finite),
}
