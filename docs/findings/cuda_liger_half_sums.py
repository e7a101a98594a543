"""Liger-Kernel adds up half types in the backward of softmax and of its experimental embedding."""

import torch
from liger_kernel.ops import LigerEmbeddingFunction
from liger_kernel.transformers.functional import liger_softmax

torch.manual_seed(0)
for width in (256, 4096):
    x = torch.randn(64, width, device="cuda").bfloat16().requires_grad_()
    cotangent = torch.rand(64, width, device="cuda").bfloat16()
    y = liger_softmax(x)
    (found,) = torch.autograd.grad(y, x, cotangent)
    wide_y, wide_g = y.detach().double(), cotangent.double()
    exact = wide_y * (wide_g - (wide_y * wide_g).sum(-1, keepdim=True))
    errors = [float((each.double() - exact).norm() / exact.norm()) for each in (found, exact.bfloat16())]
    print(f"softmax of {width} elements: gradient {errors[0]:.2%} off; rounded once {errors[1]:.2%}")

table = torch.zeros(2, 64, device="cuda", dtype=torch.bfloat16, requires_grad=True)
cotangent = torch.rand(4096, 64, device="cuda").bfloat16()
output = LigerEmbeddingFunction.apply(table, torch.zeros(4096, dtype=torch.int64, device="cuda"))
(found,) = torch.autograd.grad(output, table, cotangent)
exact = cotangent.double().sum(0)
print(f"an entry named 4096 times: its gradient is {found[0, 0].item():.0f}, and exactly {exact[0]:.0f}")
