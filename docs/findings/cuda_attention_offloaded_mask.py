"""F.scaled_dot_product_attention on CUDA with a mask: backward raises if saved tensors went to the CPU and back."""

import torch
import torch.nn.functional as F
from torch.autograd.graph import save_on_cpu

torch.manual_seed(0)
for tokens in (5, 8):
    query, key, value = (torch.randn(2, 2, tokens, 4, device="cuda", requires_grad=True) for _ in range(3))
    mask = torch.randn(2, 2, tokens, tokens, device="cuda")
    with save_on_cpu():
        output = F.scaled_dot_product_attention(query, key, value, mask)
    try:
        (found,) = torch.autograd.grad(output.sum(), query)
        leaf = query.detach().double().requires_grad_()
        again = F.scaled_dot_product_attention(leaf, key.double(), value.double(), mask.double())
        (exact,) = torch.autograd.grad(again.sum(), leaf)
        print(f"{tokens} tokens: the gradient is off by {float((found - exact).abs().max()):.1e}")
    except RuntimeError as error:
        print(f"{tokens} tokens: backward raised {str(error).splitlines()[0]}")
