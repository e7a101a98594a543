"""F.cross_entropy on CUDA adds losses up in float16: with label smoothing over the classes, and counts rows in it."""

import torch
import torch.nn.functional as F

torch.manual_seed(0)
for rows, classes, smoothing, masked in ((12, 7, 0.1, True), (70000, 3, 0.0, False)):
    logits = torch.randn(rows, classes, device="cuda").to(torch.float16)
    if masked:
        logits[:, 1::2] = -30000.0  # classes that must not be chosen
    labels = torch.zeros(rows, dtype=torch.long, device="cuda")
    logits.requires_grad_()
    exact = F.cross_entropy(logits.double(), labels, label_smoothing=smoothing)
    found = F.cross_entropy(logits, labels, label_smoothing=smoothing)
    (gradient,) = torch.autograd.grad(found, logits)
    (of_exact,) = torch.autograd.grad(exact, logits)
    print(f"{rows} rows of {classes}, label smoothing {smoothing}")
    print(f"  loss {found.item():.4f}, should be {exact.item():.4f}")
    print(f"  largest gradient {gradient.abs().max().item():.3g}, should be {of_exact.abs().max().item():.3g}")
