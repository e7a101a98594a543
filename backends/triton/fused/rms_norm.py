"""RMSNorm: one kernel for the rows forward, one for the rows backward, and one for the sum over rows.

Matrices are contiguous, of (rows, columns). A program works on tiles of ROWS rows by BLOCK columns and goes along its
rows or, for the sum over rows, down its columns; the sums of the parts of the rows are added up afterwards, in the same
order each time. All of the arithmetic is in WIDE, float32 for half types; rstd stays in it. PyTorch adds a residual.

rstd is an output of forward, so it has a history. Backward is an operator without a derivative of its own, so a second
differentiation raises: every path leads through it.
"""

import math
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from backends._python.rows import check_rms_norm_arguments
from backends.autocast import by_rule
from backends.triton.fused.launch import Kernel, block_size, blocks, row_tile, wide
from spec.rms_norm import OPERATOR

#: The function with which tl.sum adds. The interpreter recognises it, and adds by numpy.
_add = tl.standard._sum_combine

#: Into how many parts the rows are divided for the sum over them.
_PARTS = 64


@Kernel
def _forward_kernel(
    total,
    weight,
    output,
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
    squares = tl.full((ROWS, BLOCK), 0.0, WIDE)
    for tile in range(TILES):
        column = tile * BLOCK + tl.arange(0, BLOCK)[None, :]
        inside = (row < rows) & (column < columns)
        x = tl.load(total + row * columns + column, mask=inside, other=0.0).to(WIDE)
        squares += x * x
    r = 1.0 / tl.sqrt(tl.reduce(squares, 1, _add, keep_dims=True) / columns + eps)
    for tile in range(TILES):
        column = tile * BLOCK + tl.arange(0, BLOCK)[None, :]
        inside = (row < rows) & (column < columns)
        y = tl.load(total + row * columns + column, mask=inside, other=0.0).to(WIDE) * r
        if weight is not None:
            y *= tl.load(weight + column, mask=column < columns, other=0.0).to(WIDE)
        tl.store(output + row * columns + column, y, mask=inside)
    tl.store(rstd + row, r, mask=row < rows)


@Kernel
def _backward_kernel(
    grad,
    total,
    weight,
    rstd,
    d_total,
    rows,
    columns,
    WIDE: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
    TILES: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]
    r = tl.load(rstd + row, mask=row < rows, other=0.0)
    sum_h_xhat = tl.full((ROWS, BLOCK), 0.0, WIDE)
    for tile in range(TILES):
        column = tile * BLOCK + tl.arange(0, BLOCK)[None, :]
        inside = (row < rows) & (column < columns)
        h = tl.load(grad + row * columns + column, mask=inside, other=0.0).to(WIDE)
        if weight is not None:
            h *= tl.load(weight + column, mask=column < columns, other=0.0).to(WIDE)
        xhat = tl.load(total + row * columns + column, mask=inside, other=0.0).to(WIDE) * r
        sum_h_xhat += tl.where(inside, h * xhat, 0.0)
    mean_h_xhat = tl.reduce(sum_h_xhat, 1, _add, keep_dims=True) / columns
    for tile in range(TILES):
        column = tile * BLOCK + tl.arange(0, BLOCK)[None, :]
        inside = (row < rows) & (column < columns)
        h = tl.load(grad + row * columns + column, mask=inside, other=0.0).to(WIDE)
        if weight is not None:
            h *= tl.load(weight + column, mask=column < columns, other=0.0).to(WIDE)
        xhat = tl.load(total + row * columns + column, mask=inside, other=0.0).to(WIDE) * r
        tl.store(d_total + row * columns + column, r * (h - xhat * mean_h_xhat), mask=inside)


@Kernel
def _columns_kernel(
    grad,
    total,
    rstd,
    d_weight,
    rows,
    columns,
    parts,
    WIDE: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    column = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)[None, :]
    part = tl.program_id(1)
    sum_g_xhat = tl.full((ROWS, BLOCK), 0.0, WIDE)
    first = part * ROWS
    while first < rows:  # no range, as above
        row = (first + tl.arange(0, ROWS)[:, None]).to(tl.int64)
        inside = (row < rows) & (column < columns)
        g = tl.load(grad + row * columns + column, mask=inside, other=0.0).to(WIDE)
        x = tl.load(total + row * columns + column, mask=inside, other=0.0).to(WIDE)
        r = tl.load(rstd + row, mask=row < rows, other=0.0)
        sum_g_xhat += tl.where(inside, g * (x * r), 0.0)
        first += parts * ROWS
    offset = part * columns + column
    tl.store(d_weight + offset, tl.reduce(sum_g_xhat, 0, _add, keep_dims=True), mask=column < columns)


@torch.library.custom_op("conformance_triton::rms_norm_forward", mutates_args=())
def _forward(total: Tensor, weight: Tensor | None, eps: float) -> tuple[Tensor, Tensor]:
    output, rstd = _fake_forward(total, weight, eps)
    rows, columns = total.shape
    if total.numel():
        tile = row_tile(total, rows, columns)
        read = total.contiguous(), None if weight is None else weight.contiguous()
        _forward_kernel.launch((blocks(rows, tile["ROWS"]),), read, (output, rstd), rows, columns, eps=eps, **tile)
    return output, rstd


@_forward.register_fake
def _fake_forward(total: Tensor, _weight: Tensor | None, _eps: float) -> tuple[Tensor, Tensor]:
    wide_dtype = torch.promote_types(total.dtype, torch.float32)
    return total.new_empty(total.shape), total.new_empty(total.shape[0], dtype=wide_dtype)


@torch.library.custom_op("conformance_triton::rms_norm_backward", mutates_args=())
def _backward(grad: Tensor, total: Tensor, weight: Tensor | None, rstd: Tensor) -> Tensor:
    d_total = total.new_empty(total.shape)
    rows, columns = total.shape
    if total.numel():
        tile = row_tile(total, rows, columns)
        scale = None if weight is None else weight.contiguous()
        read = grad.contiguous(), total.contiguous(), scale, rstd.contiguous()
        _backward_kernel.launch((blocks(rows, tile["ROWS"]),), read, [d_total], rows, columns, **tile)
    return d_total


@_backward.register_fake
def _fake_backward(_grad: Tensor, total: Tensor, _weight: Tensor | None, _rstd: Tensor) -> Tensor:
    return total.new_empty(total.shape)


@torch.library.custom_op("conformance_triton::rms_norm_columns", mutates_args=())
def _columns(grad: Tensor, total: Tensor, rstd: Tensor) -> Tensor:
    rows, columns = total.shape
    if not total.numel():
        return total.new_zeros(columns)
    block = min(triton.next_power_of_2(columns), 64 if total.is_cuda else 4096)
    down = min(triton.next_power_of_2(rows), block_size(total) // block)
    parts = min(_PARTS, blocks(rows, down))
    d_weight = rstd.new_empty(parts, columns)
    read = grad.contiguous(), total.contiguous(), rstd.contiguous()
    grid, constants = (blocks(columns, block), parts), {"WIDE": wide(total), "ROWS": down, "BLOCK": block}
    _columns_kernel.launch(grid, read, [d_weight], rows, columns, parts, **constants)
    return d_weight.sum(0).to(total.dtype)


@_columns.register_fake
def _fake_columns(_grad: Tensor, total: Tensor, _rstd: Tensor) -> Tensor:
    return total.new_empty(total.shape[1])


def _setup(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    total, weight, _eps = inputs
    ctx.save_for_backward(total, weight, output[1])


def _vjp(ctx: Any, grad: Tensor, _grad_rstd: Tensor) -> tuple[Tensor | None, ...]:
    total, weight, rstd = ctx.saved_tensors
    wants_total, wants_weight, _ = ctx.needs_input_grad
    d_total = _backward(grad, total, weight, rstd) if wants_total else None
    return d_total, _columns(grad, total, rstd) if wants_weight else None, None


_forward.register_autograd(_vjp, setup_context=_setup)


@by_rule(OPERATOR)
def rms_norm(
    input: Tensor, weight: Tensor | None = None, residual: Tensor | None = None, eps: float = 1e-6
) -> Tensor | tuple[Tensor, Tensor]:
    """The rows of input, or of input + residual, normalised: output, or (output, input + residual)."""
    check_rms_norm_arguments(input, weight, residual)
    total = input if residual is None else input + residual
    columns = input.shape[-1]
    flat = total.reshape(math.prod(input.shape[:-1]), columns)
    output: Tensor = _forward(flat, weight, eps)[0].reshape(input.shape)  # rstd is for backward alone
    return output if residual is None else (output, total)
