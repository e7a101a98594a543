"""FlagGems' cross-entropy looks for the largest logit from 0 on: of logits far below 0 the loss is -inf."""

import flag_gems
import torch

labels = torch.tensor([1], device="cuda")
for shift in (0.0, -200.0):
    logits = (torch.tensor([[0.0, 1.0, 2.0, -1.0]], device="cuda") + shift).requires_grad_()
    loss = flag_gems.cross_entropy_loss(logits, labels)
    (gradient,) = torch.autograd.grad(loss, logits)
    exact = torch.nn.functional.cross_entropy(logits.detach().double(), labels)
    print(f"logits around {shift:.0f}: loss {loss.item():.4f}, and exactly {exact.item():.4f}; ", end="")
    print(f"{int(gradient.isnan().sum())} of 4 gradients are NaN")
