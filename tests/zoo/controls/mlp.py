"""Right, but different: each control must pass every property that `gives_up` does not name.

The left factor of a product is made contiguous, as in lltm/products.py: oneDNN reads beyond the end of its rows.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from backends.base import check_arguments
from spec.mlp import OPERATOR
from tests.zoo.honest.mlp import Network
from tests.zoo.registry import OLD_STYLE, control


@control(gives_up=OLD_STYLE)
class Honest(Network):
    """The honest network, the base of every fault."""


@control
def plain_function(
    input: Tensor, hidden_weights: Tensor, hidden_bias: Tensor, output_weights: Tensor, output_bias: Tensor
) -> Tensor:
    """Plain torch with autograd's own backward."""
    check_arguments(OPERATOR, input, hidden_weights, hidden_bias, output_weights, output_bias)
    return F.linear(F.relu(F.linear(input.contiguous(), hidden_weights, hidden_bias)), output_weights, output_bias)


@control
def product_then_bias(
    input: Tensor, hidden_weights: Tensor, hidden_bias: Tensor, output_weights: Tensor, output_bias: Tensor
) -> Tensor:
    """The product is rounded before the bias is added, which may change the sign of a pre-activation."""
    check_arguments(OPERATOR, input, hidden_weights, hidden_bias, output_weights, output_bias)
    hidden = F.relu(hidden_bias + input.contiguous() @ hidden_weights.t())
    return output_bias + hidden @ output_weights.t()


@control
def rounded_once(
    input: Tensor, hidden_weights: Tensor, hidden_bias: Tensor, output_weights: Tensor, output_bias: Tensor
) -> Tensor:
    """Both layers in one kernel: half types are rounded only at its end, the hidden values never."""
    check_arguments(OPERATOR, input, hidden_weights, hidden_bias, output_weights, output_bias)
    wide = torch.promote_types(input.dtype, torch.float32)
    tensors = (t.to(wide) for t in (input, hidden_weights, hidden_bias, output_weights, output_bias))
    input, hidden_weights, hidden_bias, output_weights, bias = tensors
    return F.linear(F.relu(F.linear(input, hidden_weights, hidden_bias)), output_weights, bias).to(output_bias.dtype)


@control
def sum_of_outer_products(
    input: Tensor, hidden_weights: Tensor, hidden_bias: Tensor, output_weights: Tensor, output_bias: Tensor
) -> Tensor:
    """Products as explicit sums over their inner dimension, in the accumulator's dtype."""
    check_arguments(OPERATOR, input, hidden_weights, hidden_bias, output_weights, output_bias)
    wide = torch.promote_types(input.dtype, torch.float32)
    z = (input.to(wide)[:, None, :] * hidden_weights.to(wide)[None]).sum(-1) + hidden_bias.to(wide)
    hidden = F.relu(z).to(input.dtype).to(wide)
    output = (hidden[:, None, :] * output_weights.to(wide)[None]).sum(-1) + output_bias.to(wide)
    return output.to(input.dtype)


@control
def split_product(
    input: Tensor, hidden_weights: Tensor, hidden_bias: Tensor, output_weights: Tensor, output_bias: Tensor
) -> Tensor:
    """The features are multiplied in two halves, each rounded to the dtype, and added: the inner size is split."""
    check_arguments(OPERATOR, input, hidden_weights, hidden_bias, output_weights, output_bias)
    half = input.shape[1] // 2
    first = input[:, :half].contiguous() @ hidden_weights[:, :half].t()
    z = (first + input[:, half:].contiguous() @ hidden_weights[:, half:].t()) + hidden_bias
    return F.linear(F.relu(z), output_weights, output_bias)


@control
def everything_in_float64(
    input: Tensor, hidden_weights: Tensor, hidden_bias: Tensor, output_weights: Tensor, output_bias: Tensor
) -> Tensor:
    """Computed in double precision and rounded once: more accuracy than required is not wrong."""
    check_arguments(OPERATOR, input, hidden_weights, hidden_bias, output_weights, output_bias)
    hidden = F.relu(F.linear(input.double(), hidden_weights.double(), hidden_bias.double()))
    return F.linear(hidden, output_weights.double(), output_bias.double()).to(input.dtype)


@control
def transposed_products(
    input: Tensor, hidden_weights: Tensor, hidden_bias: Tensor, output_weights: Tensor, output_bias: Tensor
) -> Tensor:
    """Both products are computed as (W X^T)^T."""
    check_arguments(OPERATOR, input, hidden_weights, hidden_bias, output_weights, output_bias)
    hidden = F.relu(hidden_weights.contiguous() @ input.t() + hidden_bias[:, None])
    return (output_weights.contiguous() @ hidden + output_bias[:, None]).t().contiguous()


@control
def relu_by_selection(
    input: Tensor, hidden_weights: Tensor, hidden_bias: Tensor, output_weights: Tensor, output_bias: Tensor
) -> Tensor:
    """relu as a selection: its derivative at NaN is 0. PyTorch's relu has 1; the contract prescribes neither."""
    check_arguments(OPERATOR, input, hidden_weights, hidden_bias, output_weights, output_bias)
    z = F.linear(input.contiguous(), hidden_weights, hidden_bias)
    hidden = torch.where(z > 0, z, torch.where(z.isnan(), z.detach(), torch.zeros_like(z)))
    return F.linear(hidden, output_weights, output_bias)


@control
def gradient_of_nan_is_nan(
    input: Tensor, hidden_weights: Tensor, hidden_bias: Tensor, output_weights: Tensor, output_bias: Tensor
) -> Tensor:
    """relu' of NaN is NaN: backward keeps NaN."""
    check_arguments(OPERATOR, input, hidden_weights, hidden_bias, output_weights, output_bias)
    z = F.linear(input.contiguous(), hidden_weights, hidden_bias)
    undefined = torch.where(z.isnan(), z, torch.zeros_like(z))
    return F.linear(F.relu(z) + undefined * undefined, output_weights, output_bias)


@control
def products_in_two_halves(
    input: Tensor, hidden_weights: Tensor, hidden_bias: Tensor, output_weights: Tensor, output_bias: Tensor
) -> Tensor:
    """Large batches are multiplied in two halves, as in a kernel with a limited grid."""
    check_arguments(OPERATOR, input, hidden_weights, hidden_bias, output_weights, output_bias)
    # For one row torch uses a matrix-vector product. In float16 it reads wrong addresses in rows 2^31 elements apart.
    half = input.shape[0] // 2 if input.shape[0] > 3 else 0
    dense = input.contiguous()
    hidden = F.relu(torch.cat([rows @ hidden_weights.t() for rows in (dense[:half], dense[half:])]) + hidden_bias)
    return torch.cat([rows @ output_weights.t() for rows in (hidden[:half], hidden[half:])]) + output_bias
