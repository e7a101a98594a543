"""Cross-entropy: one kernel for the loss of each row, and one for the gradient of the logits, in memory of its own.

Logits are contiguous, (rows, classes). A program works on tiles of ROWS rows by BLOCK classes and goes along its rows:
once for the maximum, once for the sum of exponentials. Of each row it keeps one number for backward, the logarithm of
that sum plus the maximum. All of the arithmetic is in WIDE, float32 for half types, and so is the mean, by PyTorch.

The losses of the rows have a history. Backward is an operator without a derivative of its own, so a second
differentiation raises.
"""

from typing import Any

import torch
import triton.language as tl
from torch import Tensor

from backends.autocast import by_rule
from backends.base import check_arguments
from backends.triton.fused.launch import Kernel, blocks, row_tile
from spec.cross_entropy import IGNORED, OPERATOR

#: The functions with which tl.sum and tl.max combine. The interpreter recognises them.
_add, _larger = tl.standard._sum_combine, tl.standard._elementwise_max


@Kernel
def _forward_kernel(
    logits,
    labels,
    losses,
    log_sums,
    rows,
    classes,
    ignored,
    smoothing: tl.constexpr,  # not an argument, which would be rounded to float32
    WIDE: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
    TILES: tl.constexpr,  # of a row; with numpy 2.4 the interpreter refuses a tensor as the bound of a range
):
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]
    label = tl.load(labels + row, mask=row < rows, other=0)
    largest = tl.full((ROWS, BLOCK), float("-inf"), WIDE)
    for tile in range(TILES):
        column = tile * BLOCK + tl.arange(0, BLOCK)[None, :]
        inside = (row < rows) & (column < classes)
        x = tl.load(logits + row * classes + column, mask=inside, other=float("-inf")).to(WIDE)
        largest = tl.maximum(largest, x)
    m = tl.reduce(largest, 1, _larger, keep_dims=True)
    exponentials = tl.full((ROWS, BLOCK), 0.0, WIDE)
    differences = tl.full((ROWS, BLOCK), 0.0, WIDE)
    for tile in range(TILES):
        column = tile * BLOCK + tl.arange(0, BLOCK)[None, :]
        inside = (row < rows) & (column < classes)
        x = tl.load(logits + row * classes + column, mask=inside, other=0.0).to(WIDE) - m
        exponentials += tl.where(inside, tl.exp(x), 0.0)
        if smoothing > 0:
            differences += tl.where(inside, x, 0.0)
    total = tl.log(tl.reduce(exponentials, 1, _add, keep_dims=True))
    # A label that is no class gives NaN, not what lies beside the row.
    is_class = (row < rows) & (label >= 0) & (label < classes)
    y = tl.load(logits + row * classes + label, mask=is_class, other=float("nan")).to(WIDE) - m - total
    loss = -y
    if smoothing > 0:
        mean = tl.reduce(differences, 1, _add, keep_dims=True) / classes - total
        loss = loss * (1.0 - smoothing) - mean * smoothing
    tl.store(losses + row, tl.where(label == ignored, 0.0, loss), mask=row < rows)
    tl.store(log_sums + row, m + total, mask=row < rows)


@Kernel
def _backward_kernel(
    grad,
    logits,
    labels,
    log_sums,
    d_logits,
    rows,
    classes,
    ignored,
    smoothing: tl.constexpr,
    even: tl.constexpr,  # smoothing / classes, which would be float32 here
    WIDE: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
    TILES: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]
    label = tl.load(labels + row, mask=row < rows, other=0)
    log_sum = tl.load(log_sums + row, mask=row < rows, other=0.0)
    g = tl.load(grad + row, mask=row < rows, other=0.0)
    for tile in range(TILES):
        column = tile * BLOCK + tl.arange(0, BLOCK)[None, :]
        inside = (row < rows) & (column < classes)
        x = tl.load(logits + row * classes + column, mask=inside, other=0.0).to(WIDE)
        target = tl.where(column == label, 1.0, 0.0).to(WIDE) * (1.0 - smoothing) + even
        d = (tl.exp(x - log_sum) - target) * g
        tl.store(d_logits + row * classes + column, tl.where(label == ignored, 0.0, d), mask=inside)


@torch.library.custom_op("conformance_triton::cross_entropy_forward", mutates_args=())
def _forward(logits: Tensor, labels: Tensor, ignored: int, smoothing: float) -> tuple[Tensor, Tensor]:
    losses, log_sums = _fake_forward(logits, labels, ignored, smoothing)
    rows, classes = logits.shape
    if logits.numel():
        tile = row_tile(logits, rows, classes)
        read, written = (logits.contiguous(), labels.contiguous()), (losses, log_sums)
        grid = (blocks(rows, tile["ROWS"]),)
        _forward_kernel.launch(grid, read, written, rows, classes, ignored, smoothing=smoothing, **tile)
    return losses, log_sums


@_forward.register_fake
def _fake_forward(logits: Tensor, _labels: Tensor, _ignored: int, _smoothing: float) -> tuple[Tensor, Tensor]:
    wide_dtype = torch.promote_types(logits.dtype, torch.float32)
    losses = logits.new_empty(logits.shape[0], dtype=wide_dtype)
    return losses, torch.empty_like(losses)


@torch.library.custom_op("conformance_triton::cross_entropy_backward", mutates_args=())
def _backward(grad: Tensor, logits: Tensor, labels: Tensor, log_sums: Tensor, ignored: int, smoothing: float) -> Tensor:
    d_logits = logits.new_empty(logits.shape)
    rows, classes = logits.shape
    if logits.numel():
        tile = row_tile(logits, rows, classes)
        read = grad.contiguous(), logits.contiguous(), labels.contiguous(), log_sums.contiguous()
        smoothed = {"smoothing": smoothing, "even": smoothing / classes}
        grid = (blocks(rows, tile["ROWS"]),)
        _backward_kernel.launch(grid, read, [d_logits], rows, classes, ignored, **smoothed, **tile)
    return d_logits


@_backward.register_fake
def _fake_backward(
    _grad: Tensor, logits: Tensor, _labels: Tensor, _log_sums: Tensor, _ignored: int, _smoothing: float
) -> Tensor:
    return logits.new_empty(logits.shape)


def _setup(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    logits, labels, ctx.ignored, ctx.smoothing = inputs
    ctx.save_for_backward(logits, labels, output[1])


def _vjp(ctx: Any, grad: Tensor, _grad_log_sums: Tensor) -> tuple[Tensor | None, ...]:
    return _backward(grad, *ctx.saved_tensors, ctx.ignored, ctx.smoothing), None, None, None


_forward.register_autograd(_vjp, setup_context=_setup)


@by_rule(OPERATOR)
def cross_entropy(logits: Tensor, labels: Tensor, ignore_index: int = IGNORED, label_smoothing: float = 0.0) -> Tensor:
    """The loss, without dimensions: the mean over the rows whose label is not `ignore_index`."""
    check_arguments(OPERATOR, logits, labels)
    losses, _ = _forward(logits, labels, ignore_index, float(label_smoothing))  # the rest is for backward alone
    loss: Tensor = (losses.sum() / (labels != ignore_index).sum()).to(logits.dtype)
    return loss
