"""LayerNorm: one kernel for the rows forward, one for the rows backward, and one for the sums over rows.

Matrices are contiguous, of (rows, columns). A program works on tiles of ROWS rows by BLOCK columns. It goes along its
rows, or, for the sums over rows, down its columns. The rows are divided into parts for these sums, and the sums of the
parts are added up afterwards, in the same order each time. All of the arithmetic is in WIDE, float32 for half types;
mean and rstd stay in it.

mean and rstd are outputs of forward, so they have a history. Backward is an operator without a derivative of its own,
so a second differentiation raises: every path leads through it.
"""

import math
from collections.abc import Sequence
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from backends._python.layer_norm import check_layer_norm_arguments
from backends.autocast import by_rule
from backends.triton.fused.launch import Kernel, block_size, blocks, row_tile, wide
from spec.layer_norm import OPERATOR

#: The function with which tl.sum adds. The interpreter recognises it, and adds by numpy.
_add = tl.standard._sum_combine

#: Into how many parts the rows are divided for the sums over them.
_PARTS = 64


@Kernel
def _forward_kernel(
    input,
    weight,
    bias,
    output,
    mean,
    rstd,
    rows,
    columns,
    eps: tl.constexpr,  # not an argument, which would be rounded to float32
    WIDE: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
    TILES: tl.constexpr,  # of a row; with numpy 2.4 the interpreter refuses a tensor as the bound of a range
):
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]
    total = tl.full((ROWS, BLOCK), 0.0, WIDE)
    for tile in range(TILES):
        column = tile * BLOCK + tl.arange(0, BLOCK)[None, :]
        inside = (row < rows) & (column < columns)
        total += tl.load(input + row * columns + column, mask=inside, other=0.0).to(WIDE)
    m = tl.reduce(total, 1, _add, keep_dims=True) / columns
    squares = tl.full((ROWS, BLOCK), 0.0, WIDE)
    for tile in range(TILES):
        column = tile * BLOCK + tl.arange(0, BLOCK)[None, :]
        inside = (row < rows) & (column < columns)
        x = tl.load(input + row * columns + column, mask=inside, other=0.0).to(WIDE)
        squares += tl.where(inside, (x - m) * (x - m), 0.0)
    r = 1.0 / tl.sqrt(tl.reduce(squares, 1, _add, keep_dims=True) / columns + eps)
    for tile in range(TILES):
        column = tile * BLOCK + tl.arange(0, BLOCK)[None, :]
        inside = (row < rows) & (column < columns)
        y = (tl.load(input + row * columns + column, mask=inside, other=0.0).to(WIDE) - m) * r
        if weight is not None:
            y *= tl.load(weight + column, mask=column < columns, other=0.0).to(WIDE)
        if bias is not None:
            y += tl.load(bias + column, mask=column < columns, other=0.0).to(WIDE)
        tl.store(output + row * columns + column, y, mask=inside)
    tl.store(mean + row, m, mask=row < rows)
    tl.store(rstd + row, r, mask=row < rows)


@Kernel
def _backward_kernel(
    grad,
    input,
    weight,
    mean,
    rstd,
    d_input,
    rows,
    columns,
    WIDE: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
    TILES: tl.constexpr,  # of a row; with numpy 2.4 the interpreter refuses a tensor as the bound of a range
):
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]
    m = tl.load(mean + row, mask=row < rows, other=0.0)
    r = tl.load(rstd + row, mask=row < rows, other=0.0)
    sum_h = tl.full((ROWS, BLOCK), 0.0, WIDE)
    sum_h_xhat = tl.full((ROWS, BLOCK), 0.0, WIDE)
    for tile in range(TILES):
        column = tile * BLOCK + tl.arange(0, BLOCK)[None, :]
        inside = (row < rows) & (column < columns)
        h = tl.load(grad + row * columns + column, mask=inside, other=0.0).to(WIDE)
        if weight is not None:
            h *= tl.load(weight + column, mask=column < columns, other=0.0).to(WIDE)
        xhat = (tl.load(input + row * columns + column, mask=inside, other=0.0).to(WIDE) - m) * r
        sum_h += h
        sum_h_xhat += tl.where(inside, h * xhat, 0.0)
    mean_h = tl.reduce(sum_h, 1, _add, keep_dims=True) / columns
    mean_h_xhat = tl.reduce(sum_h_xhat, 1, _add, keep_dims=True) / columns
    for tile in range(TILES):
        column = tile * BLOCK + tl.arange(0, BLOCK)[None, :]
        inside = (row < rows) & (column < columns)
        h = tl.load(grad + row * columns + column, mask=inside, other=0.0).to(WIDE)
        if weight is not None:
            h *= tl.load(weight + column, mask=column < columns, other=0.0).to(WIDE)
        xhat = (tl.load(input + row * columns + column, mask=inside, other=0.0).to(WIDE) - m) * r
        tl.store(d_input + row * columns + column, r * (h - mean_h - xhat * mean_h_xhat), mask=inside)


@Kernel
def _columns_kernel(
    grad,
    input,
    mean,
    rstd,
    d_weight,
    d_bias,
    rows,
    columns,
    parts,
    WIDE: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    column = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)[None, :]
    part = tl.program_id(1)
    sum_g = tl.full((ROWS, BLOCK), 0.0, WIDE)
    sum_g_xhat = tl.full((ROWS, BLOCK), 0.0, WIDE)
    first = part * ROWS
    while first < rows:  # no range, as above
        row = (first + tl.arange(0, ROWS)[:, None]).to(tl.int64)
        inside = (row < rows) & (column < columns)
        g = tl.load(grad + row * columns + column, mask=inside, other=0.0).to(WIDE)
        x = tl.load(input + row * columns + column, mask=inside, other=0.0).to(WIDE)
        m = tl.load(mean + row, mask=row < rows, other=0.0)
        r = tl.load(rstd + row, mask=row < rows, other=0.0)
        sum_g += g
        sum_g_xhat += tl.where(inside, g * ((x - m) * r), 0.0)
        first += parts * ROWS
    offset = part * columns + column
    tl.store(d_weight + offset, tl.reduce(sum_g_xhat, 0, _add, keep_dims=True), mask=column < columns)
    tl.store(d_bias + offset, tl.reduce(sum_g, 0, _add, keep_dims=True), mask=column < columns)


def _statistics(input: Tensor) -> Tensor:
    return input.new_empty(input.shape[0], dtype=torch.promote_types(input.dtype, torch.float32))


def _dense(tensor: Tensor | None) -> Tensor | None:
    return None if tensor is None else tensor.contiguous()


@torch.library.custom_op("conformance_triton::layer_norm_forward", mutates_args=())
def _forward(input: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float) -> tuple[Tensor, Tensor, Tensor]:
    output, mean, rstd = _fake_forward(input, weight, bias, eps)
    rows, columns = input.shape
    if input.numel():
        tile = row_tile(input, rows, columns)
        read = input.contiguous(), _dense(weight), _dense(bias)
        grid = (blocks(rows, tile["ROWS"]),)
        _forward_kernel.launch(grid, read, (output, mean, rstd), rows, columns, eps=eps, **tile)
    return output, mean, rstd


@_forward.register_fake
def _fake_forward(
    input: Tensor, _weight: Tensor | None, _bias: Tensor | None, _eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    return input.new_empty(input.shape), _statistics(input), _statistics(input)


@torch.library.custom_op("conformance_triton::layer_norm_backward", mutates_args=())
def _backward(grad: Tensor, input: Tensor, weight: Tensor | None, mean: Tensor, rstd: Tensor) -> Tensor:
    d_input = input.new_empty(input.shape)
    rows, columns = input.shape
    if input.numel():
        tile = row_tile(input, rows, columns)
        read = grad.contiguous(), input.contiguous(), _dense(weight), mean.contiguous(), rstd.contiguous()
        _backward_kernel.launch((blocks(rows, tile["ROWS"]),), read, [d_input], rows, columns, **tile)
    return d_input


@_backward.register_fake
def _fake_backward(_grad: Tensor, input: Tensor, _weight: Tensor | None, _mean: Tensor, _rstd: Tensor) -> Tensor:
    return input.new_empty(input.shape)


@torch.library.custom_op("conformance_triton::layer_norm_columns", mutates_args=())
def _columns(grad: Tensor, input: Tensor, mean: Tensor, rstd: Tensor) -> tuple[Tensor, Tensor]:
    rows, columns = input.shape
    if not input.numel():
        return input.new_zeros(columns), input.new_zeros(columns)
    block = min(triton.next_power_of_2(columns), 64 if input.is_cuda else 4096)
    down = min(triton.next_power_of_2(rows), block_size(input) // block)
    parts = min(_PARTS, blocks(rows, down))
    d_weight, d_bias = rstd.new_empty(parts, columns), rstd.new_empty(parts, columns)
    read = grad.contiguous(), input.contiguous(), mean.contiguous(), rstd.contiguous()
    grid, constants = (blocks(columns, block), parts), {"WIDE": wide(input), "ROWS": down, "BLOCK": block}
    _columns_kernel.launch(grid, read, (d_weight, d_bias), rows, columns, parts, **constants)
    return d_weight.sum(0).to(input.dtype), d_bias.sum(0).to(input.dtype)


@_columns.register_fake
def _fake_columns(_grad: Tensor, input: Tensor, _mean: Tensor, _rstd: Tensor) -> tuple[Tensor, Tensor]:
    return input.new_empty(input.shape[1]), input.new_empty(input.shape[1])


def _setup(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    input, weight, _bias, _eps = inputs
    _output, mean, rstd = output
    ctx.save_for_backward(input, weight, mean, rstd)


def _vjp(ctx: Any, grad: Tensor, _grad_mean: Tensor, _grad_rstd: Tensor) -> tuple[Tensor | None, ...]:
    input, weight, mean, rstd = ctx.saved_tensors
    wants_input, wants_weight, wants_bias, _ = ctx.needs_input_grad
    d_input = _backward(grad, input, weight, mean, rstd) if wants_input else None
    d_weight, d_bias = _columns(grad, input, mean, rstd) if wants_weight or wants_bias else (None, None)
    return d_input, d_weight if wants_weight else None, d_bias if wants_bias else None, None


_forward.register_autograd(_vjp, setup_context=_setup)


@by_rule(OPERATOR)
def layer_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """The rows of input normalised over its last dimensions, `normalized_shape`; of the shape of input."""
    check_layer_norm_arguments(input, normalized_shape, weight, bias)
    columns = math.prod(normalized_shape)
    rows = math.prod(input.shape[: input.dim() - len(normalized_shape)])
    flat = [None if tensor is None else tensor.reshape(columns) for tensor in (weight, bias)]
    output: Tensor = _forward(input.reshape(rows, columns), *flat, eps)[0]  # mean and rstd are for backward alone
    return output.reshape(input.shape)
