"""torch.func for operators in C++: the functions that replace them while a transform of functorch is active.

PyTorch has no functorch rule for a C++ autograd function. It has one for a torch.autograd.Function with a separate
setup_context and a rule for vmap. Such a Function wraps the operator's forward and backward, which are operators too:
under a transform the kernels are the same, and only the code that calls them is Python.

vmap calls the kernels once for each sample, since they take one batch. Gradients are of the first order: a second
differentiation under torch.func raises, and never returns a wrong result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

#: Gradients of all inputs, from (inputs, what forward returned, cotangents of the outputs).
Backward = Callable[[Sequence[Any], Sequence[Tensor], Sequence[Tensor]], Sequence[Tensor]]


def lltm(ops: Any) -> Callable[..., Any]:
    """(input, weights, bias, old_h, old_cell) -> (new_h, new_cell) by the operators of `ops`, a torch.ops namespace."""

    def backward(inputs: Sequence[Any], made: Sequence[Tensor], cotangents: Sequence[Tensor]) -> Sequence[Tensor]:
        input, weights, _bias, old_h, old_cell = inputs
        gradients: list[Tensor] = ops.lltm_backward(*cotangents, made[2], input, weights, old_h, old_cell, [True] * 5)
        return gradients

    return _transformable(ops.lltm_forward, backward, outputs=2)


def lltm_sequence(ops: Any) -> Callable[..., Any]:
    """(input, weights, bias, h0, c0) -> (h, c_T) by the operators of `ops`, a torch.ops namespace."""

    def backward(inputs: Sequence[Any], made: Sequence[Tensor], cotangents: Sequence[Tensor]) -> Sequence[Tensor]:
        input, weights, _bias, h0, _c0 = inputs
        h, _c_T, gates, cells = made
        gradients: list[Tensor] = ops.lltm_sequence_backward(
            *cotangents, gates, cells, h, input, weights, h0, [True] * 5
        )
        return gradients

    return _transformable(ops.lltm_sequence_forward, backward, outputs=2)


def mlp(ops: Any) -> Callable[..., Any]:
    """(input, hidden_weights, hidden_bias, output_weights, output_bias) -> output, by the operators of `ops`."""

    def backward(inputs: Sequence[Any], made: Sequence[Tensor], cotangents: Sequence[Tensor]) -> Sequence[Tensor]:
        input, hidden_weights, _hidden_bias, output_weights, _output_bias = inputs
        gradients: list[Tensor] = ops.mlp_backward(
            *cotangents, made[1], input, hidden_weights, output_weights, [True] * 5
        )
        return gradients

    return _transformable(ops.mlp_forward, backward, outputs=1)


def layer_norm(ops: Any) -> Callable[..., Any]:
    """torch.nn.functional.layer_norm's arguments -> output, by the operators of `ops`, a torch.ops namespace."""

    @lru_cache(maxsize=64)
    def of(shape: tuple[int, ...], eps: float) -> Callable[..., Any]:
        def forward(input: Tensor, weight: Tensor | None, bias: Tensor | None) -> Sequence[Tensor]:
            made: tuple[Tensor, ...] = ops.layer_norm_forward(input, shape, weight, bias, eps)
            return made

        def backward(inputs: Sequence[Any], made: Sequence[Tensor], cotangents: Sequence[Tensor]) -> Sequence[Tensor]:
            input, weight, bias = inputs
            _output, mean, rstd = made
            wanted = [True, weight is not None, bias is not None]
            gradients: list[Tensor] = ops.layer_norm_backward(
                *cotangents, input, mean, rstd, weight, len(shape), wanted
            )
            return gradients

        return _transformable(forward, backward, outputs=1)

    def function(
        input: Tensor,
        normalized_shape: Sequence[int],
        weight: Tensor | None = None,
        bias: Tensor | None = None,
        eps: float = 1e-5,
    ) -> Any:
        return of(tuple(normalized_shape), eps)(input, weight, bias)

    return function


def _transformable(forward: Callable[..., Sequence[Tensor]], backward: Backward, outputs: int) -> Callable[..., Any]:
    """A function that every transform supports. It returns the first `outputs` tensors of `forward`.

    The other tensors of `forward` are for backward. An input may be None; `backward` returns the gradients of the
    others.
    """

    class Gradient(torch.autograd.Function):
        """(inputs, what forward made, cotangents) -> gradients of the inputs that are there."""

        @staticmethod
        def forward(count: int, *flat: Any) -> tuple[Tensor, ...]:
            made = len(flat) - outputs
            return tuple(backward(flat[:count], flat[count:made], flat[made:]))

        @staticmethod
        def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
            pass  # nothing is differentiated a second time

        @staticmethod
        def backward(ctx: Any, *cotangents: Tensor) -> Any:
            raise NotImplementedError(
                "torch.func differentiates this operator once, but should not twice: call it without torch.func, and "
                "torch.autograd.grad(create_graph=True) gives the second derivative"
            )

        @staticmethod
        def vmap(info: Any, in_dims: tuple[int | None, ...], *flat: Any) -> tuple[tuple[Tensor, ...], int]:
            return _each_sample(Gradient, info.batch_size, in_dims, flat)

    class Operator(torch.autograd.Function):
        """inputs -> everything that forward made."""

        @staticmethod
        def forward(*inputs: Any) -> tuple[Tensor, ...]:
            return tuple(forward(*inputs))

        @staticmethod
        def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
            ctx.count = len(inputs)
            ctx.save_for_backward(*inputs, *output)

        @staticmethod
        def backward(ctx: Any, *cotangents: Tensor) -> tuple[Tensor | None, ...]:
            saved = ctx.saved_tensors
            used = (g.contiguous() for g in cotangents[:outputs])
            found = iter(Gradient.apply(ctx.count, *saved, *used))  # type: ignore[no-untyped-call]
            return tuple(None if tensor is None else next(found) for tensor in saved[: ctx.count])

        @staticmethod
        def vmap(info: Any, in_dims: tuple[int | None, ...], *inputs: Any) -> tuple[tuple[Tensor, ...], int]:
            return _each_sample(Operator, info.batch_size, in_dims, inputs)

    def function(*inputs: Any) -> Any:
        made = Operator.apply(*inputs)  # type: ignore[no-untyped-call]
        return made[0] if outputs == 1 else tuple(made[:outputs])

    return function


def _each_sample(
    function: type[torch.autograd.Function], count: int, in_dims: Sequence[int | None], arguments: Sequence[Any]
) -> tuple[tuple[Tensor, ...], int]:
    """A rule for vmap: the results of each sample, stacked along a new first dimension."""
    samples = [
        function.apply(*(x if d is None else x.select(d, k) for x, d in zip(arguments, in_dims, strict=True)))  # type: ignore[no-untyped-call]
        for k in range(count)
    ]
    return tuple(torch.stack(parts) for parts in zip(*samples, strict=True)), 0
