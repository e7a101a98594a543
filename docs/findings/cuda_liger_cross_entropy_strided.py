"""Liger-Kernel's cross-entropy of logits that are not contiguous returns the logits as their own gradient."""

import torch
import torch.nn.functional as F
from liger_kernel.transformers.functional import liger_cross_entropy

torch.manual_seed(0)
by_class, labels = torch.randn(5, 3, device="cuda"), torch.tensor([0, 1, 2], device="cuda")
for name, logits in (("contiguous", by_class.t().contiguous()), ("transposed", by_class.t())):
    leaf, exact = logits.detach().requires_grad_(), logits.double().requires_grad_()
    before = logits.clone()
    (found,) = torch.autograd.grad(liger_cross_entropy(leaf, labels), leaf)
    (right,) = torch.autograd.grad(F.cross_entropy(exact, labels), exact)
    print(f"{name}: the gradient is off by {float((found - right).abs().max()):.1e}; ", end="")
    print(f"it is the logits: {torch.equal(found, before)}")
