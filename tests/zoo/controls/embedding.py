"""Embedding, right but different: each control must pass every property that `gives_up` does not name."""

import torch
import torch.nn.functional as F
from torch import Tensor

from backends._python.embedding import check_embedding_arguments
from tests.zoo.honest.embedding import Table
from tests.zoo.registry import OLD_STYLE, control


@control(gives_up=OLD_STYLE)
class Honest(Table):
    """The honest embedding, the base of every fault."""


@control
def torchs_own_in_float32(weight: Tensor, indices: Tensor) -> Tensor:
    """F.embedding of the table in float32 for half types, so that the gradient is added up in it."""
    check_embedding_arguments(weight, indices)
    return F.embedding(indices, weight.to(torch.promote_types(weight.dtype, torch.float32))).to(weight.dtype)


@control
def gathered(weight: Tensor, indices: Tensor) -> Tensor:
    """Elements are gathered one by one, not rows; the gradient is a scatter_add."""
    check_embedding_arguments(weight, indices)
    wide = weight.to(torch.promote_types(weight.dtype, torch.float32))
    flat = indices.reshape(-1, 1).expand(-1, weight.shape[1])
    return wide.gather(0, flat).view(*indices.shape, weight.shape[1]).to(weight.dtype)


@control
def everything_in_float64(weight: Tensor, indices: Tensor) -> Tensor:
    """The gradient is added up in double precision: more accuracy than required is not wrong."""
    check_embedding_arguments(weight, indices)
    rows = weight.double().index_select(0, indices.reshape(-1)).to(weight.dtype)
    return rows.view(*indices.shape, weight.shape[1])
