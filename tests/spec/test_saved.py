"""What the contracts list as saved for backward is what autograd saves of the reference: no less, and not much more."""

from __future__ import annotations

from math import prod

import pytest
import torch
from torch import Tensor

from harness import discovery
from spec.contract import Draw, Operator, Sizes

FORMS = [form for operator in discovery.operators().values() for form in operator.every_form()]


def _doubled(sizes: Sizes) -> Sizes:
    symbol = "batch" if "batch" in sizes else next(iter(sizes))
    return {**sizes, symbol: 2 * sizes[symbol]}


def _listed(operator: Operator, sizes: Sizes) -> int:
    return sum(prod(arg.shape_for(sizes)) for arg in operator.saved)


def _kept_by_autograd(operator: Operator, sizes: Sizes) -> int:
    """Elements of the storages that autograd saves of the reference, besides those of inputs and outputs."""
    made = operator.ordinary(sizes, Draw(0))
    inputs = [made[arg.name].requires_grad_(arg.differentiable) for arg in operator.inputs]
    kept: dict[int, Tensor] = {}

    def pack(tensor: Tensor) -> Tensor:
        kept[tensor.untyped_storage().data_ptr()] = tensor
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        outputs = operator.forward(*inputs)
    own = {tensor.untyped_storage().data_ptr() for tensor in (*inputs, *outputs)}
    return sum(tensor.untyped_storage().nbytes() // 8 for address, tensor in kept.items() if address not in own)


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.title)
def test_saved_covers_what_autograd_keeps_of_the_reference(form: Operator) -> None:
    small = max((case.sizes for case in form.cases if "small" in case.tags), key=lambda sizes: min(sizes.values()))
    large = _doubled(small)
    kept = _kept_by_autograd(form, large) - _kept_by_autograd(form, small)
    listed = _listed(form, large) - _listed(form, small)
    assert bool(kept) == bool(form.saved), f"{form.title}: autograd keeps {kept}"
    assert kept <= listed <= 1.5 * kept, f"{form.title}: autograd keeps {kept}, the contract lists {listed}"
