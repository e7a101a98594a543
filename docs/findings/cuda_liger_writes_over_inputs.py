"""Liger-Kernel writes over tensors of its caller: logits in forward, gate and up in backward, queries in forward."""

import torch
from liger_kernel.transformers import functional as liger

torch.manual_seed(0)
device = "cuda"


def changed(before: torch.Tensor, after: torch.Tensor) -> str:
    """How many elements differ."""
    return f"{int((before != after).sum())} of {after.numel()} elements changed"


logits = torch.randn(4, 8, device=device)
before = logits.clone()
liger.liger_cross_entropy(logits.requires_grad_(), torch.arange(4, device=device))
print(f"liger_cross_entropy, forward: {changed(before, logits.detach())}")

gate, up = (torch.randn(4, 8, device=device, requires_grad=True) for _ in range(2))
for name in ("liger_swiglu", "liger_geglu"):
    before = gate.detach().clone()
    output = getattr(liger, name)(gate, up)
    (first,) = torch.autograd.grad(output.sum(), gate, retain_graph=True)
    first = first.clone()
    (second,) = torch.autograd.grad(output.sum(), gate)
    print(f"{name}, backward: {changed(before, gate.detach())}; a second backward gives another gradient: ", end="")
    print(not torch.equal(first, second))

heads, tables = torch.randn(1, 3, 2, 8, device=device), torch.randn(2, 3, 4, device=device)
before = heads.clone()
liger.liger_rope(heads.transpose(1, 2), heads.new_zeros(1, 1, 3, 8), *tables, rotary_dim=8)
print(f"liger_rope, forward: {changed(before, heads)}")
