"""F.softmax on CUDA rounds cotangent * output to the half type in backward, before it adds the products up."""

import torch
import torch.nn.functional as F

torch.manual_seed(0)
x = torch.randn(4096, 64).bfloat16().cuda().requires_grad_()
cotangent = torch.randn(4096, 64).bfloat16().cuda()
y = F.softmax(x, -1)
(found,) = torch.autograd.grad(y, x, cotangent)

y = y.detach()
unit = torch.finfo(torch.bfloat16).eps / 2
for name, product in (("exact products", cotangent.double() * y.double()), ("rounded products", cotangent * y)):
    exact = product.double() - y.double() * product.double().sum(-1, keepdim=True)
    worst = float(((found.double() - exact).abs() / (unit * exact.abs() + 1e-30)).max())
    print(f"gradient from {name}: off by {worst:.2f} times the rounding of one store")
