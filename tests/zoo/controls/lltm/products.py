"""Right, but the product of input and weights is computed, split or summed in another way.

A matrix that is the left factor of `@` is made contiguous first. With bfloat16 on a CPU with AMX, torch 2.13 (oneDNN)
reads the padding between the rows of that factor and multiplies it by 0, which gives NaN if the padding holds NaN: the
library would make the function wrong. `F.linear` does the same; docs/method.md has the details.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from backends.base import check_arguments
from spec.lltm import OPERATOR
from tests.zoo.honest.lltm import Outputs, elementwise, plain, rounded, wide
from tests.zoo.registry import control


@control
def two_products(input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor, old_cell: Tensor) -> Outputs:
    """The products of the state and of the input are computed separately and added: another order of summation."""
    check_arguments(OPERATOR, input, weights, bias, old_h, old_cell)
    H = old_h.shape[1]
    # Contiguous for the sake of AMX, see above.
    z = input.contiguous() @ weights[:, H:].t() + (old_h.contiguous() @ weights[:, :H].t() + bias)
    z_i, z_o, z_k = z.split(H, dim=1)
    new_cell = torch.sigmoid(z_i) * F.elu(z_k) + old_cell
    return torch.sigmoid(z_o) * new_cell.tanh(), new_cell


@control
def sum_of_outer_products(input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor, old_cell: Tensor) -> Outputs:
    """The product as an explicit sum over its inner dimension, in the accumulator's dtype."""
    check_arguments(OPERATOR, input, weights, bias, old_h, old_cell)
    X, W, b, c = wide(torch.cat([old_h, input], dim=1), weights, bias, old_cell)
    z_i, z_o, z_k = ((X[:, None, :] * W[None]).sum(-1) + b).chunk(3, dim=1)
    return rounded(input.dtype, *elementwise(z_i, z_o, z_k, c))


@control
def pairwise_sums(input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor, old_cell: Tensor) -> Outputs:
    """The terms of the product are added as a tree, neighbours first."""
    check_arguments(OPERATOR, input, weights, bias, old_h, old_cell)
    X, W, b, c = wide(torch.cat([old_h, input], dim=1), weights, bias, old_cell)
    terms = X[:, None, :] * W[None]
    while terms.shape[-1] > 1:
        if terms.shape[-1] % 2:
            terms = F.pad(terms, (0, 1))
        terms = terms[..., 0::2] + terms[..., 1::2]
    z_i, z_o, z_k = (terms.sum(-1) + b).chunk(3, dim=1)
    return rounded(input.dtype, *elementwise(z_i, z_o, z_k, c))


@control
def kahan_sums(input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor, old_cell: Tensor) -> Outputs:
    """The inner dimension in blocks of 16, whose products are added up with Kahan's compensation."""
    check_arguments(OPERATOR, input, weights, bias, old_h, old_cell)
    X, W, b, c = wide(torch.cat([old_h, input], dim=1), weights, bias, old_cell)
    total, lost = b.expand(X.shape[0], -1), torch.zeros_like(b)
    for x, w in zip(X.split(16, dim=1), W.split(16, dim=1), strict=True):
        term = x @ w.t() - lost
        sum = total + term
        lost = (sum - total) - term
        # No compensation for an infinite sum: inf - inf is NaN.
        lost = torch.where(lost.isfinite(), lost, torch.zeros_like(lost))
        total = sum
    z_i, z_o, z_k = total.chunk(3, dim=1)
    return rounded(input.dtype, *elementwise(z_i, z_o, z_k, c))


@control
def transposed_weights(input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor, old_cell: Tensor) -> Outputs:
    """The product is computed as (W X^T)^T."""
    check_arguments(OPERATOR, input, weights, bias, old_h, old_cell)
    # Contiguous for the sake of AMX, see above.
    z = (weights.contiguous() @ torch.cat([old_h.t(), input.t()])).t() + bias
    z_i, z_o, z_k = z.chunk(3, dim=1)
    new_cell = old_cell + F.elu(z_k) * torch.sigmoid(z_i)
    return torch.tanh(new_cell) * torch.sigmoid(z_o), new_cell.contiguous()


@control
def weights_laid_out_anew(input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor, old_cell: Tensor) -> Outputs:
    """The transpose of the weights is copied, as in kernels with packed weights, for addmm."""
    check_arguments(OPERATOR, input, weights, bias, old_h, old_cell)
    z = torch.addmm(bias, torch.cat([old_h, input], dim=1), weights.t().contiguous())
    z_i, z_o, z_k = z.chunk(3, dim=1)
    return elementwise(z_i, z_o, z_k, old_cell)


@control
def einsum_over_gates(input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor, old_cell: Tensor) -> Outputs:
    """The three gates are a dimension of a tensor, summed by einsum in float32 or wider."""
    check_arguments(OPERATOR, input, weights, bias, old_h, old_cell)
    X, W, b, c = wide(torch.cat([old_h, input], dim=1), weights, bias, old_cell)
    state = old_h.shape[1]
    z = torch.einsum("bk,ghk->gbh", X, W.reshape(3, state, X.shape[1])) + b.reshape(3, 1, state)
    return rounded(input.dtype, *elementwise(z[0], z[1], z[2], c))


@control
def batched_product(input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor, old_cell: Tensor) -> Outputs:
    """One baddbmm, a batch of three products, with the bias as its first argument."""
    check_arguments(OPERATOR, input, weights, bias, old_h, old_cell)
    X, state = torch.cat([old_h, input], dim=1), old_h.shape[1]
    W = weights.reshape(3, state, X.shape[1]).transpose(1, 2).contiguous()
    z = torch.baddbmm(bias.reshape(3, 1, state), X.expand(3, *X.shape).contiguous(), W)
    return elementwise(z[0], z[1], z[2], old_cell)


@control
def candidate_first(input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor, old_cell: Tensor) -> Outputs:
    """Each gate has its own product, by F.linear; the last gate is computed first."""
    check_arguments(OPERATOR, input, weights, bias, old_h, old_cell)
    X, H = torch.cat([old_h, input], dim=1), old_h.shape[1]
    z_k = F.linear(X, weights[2 * H :], bias[2 * H :])
    z_o = F.linear(X, weights[H : 2 * H], bias[H : 2 * H])
    z_i = F.linear(X, weights[:H], bias[:H])
    return elementwise(z_i, z_o, z_k, old_cell)


@control
def row_by_row(input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor, old_cell: Tensor) -> Outputs:
    """Large batches are computed in two halves, as in a kernel with a limited grid."""
    check_arguments(OPERATOR, input, weights, bias, old_h, old_cell)
    half = input.shape[0] // 2
    parts = [
        plain(input[rows], weights, bias, old_h[rows], old_cell[rows]) for rows in (slice(0, half), slice(half, None))
    ]
    new_h, new_cell = (torch.cat(part) for part in zip(*parts, strict=True))
    return new_h, new_cell


@control
def blocks_of_states(input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor, old_cell: Tensor) -> Outputs:
    """Sixteen columns of the state at a time, each block with its own rows of the weights, as in a tiled kernel."""
    check_arguments(OPERATOR, input, weights, bias, old_h, old_cell)
    # In float32 or wider: each block adds to the gradients of the state, and bfloat16 would round every such sum.
    X, W, b, c = wide(torch.cat([old_h, input], dim=1), weights, bias, old_cell)
    H, parts = old_h.shape[1], []
    for columns in torch.arange(H, device=input.device).split(16):
        z_i, z_o, z_k = (F.linear(X, W[columns + gate * H], b[columns + gate * H]) for gate in range(3))
        parts.append(elementwise(z_i, z_o, z_k, c[:, columns]))
    return rounded(input.dtype, *(torch.cat(part, dim=1) for part in zip(*parts, strict=True)))
