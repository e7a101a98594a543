"""F.layer_norm on the CPU adds up the gradients of weight and bias in the half type: the sum stops growing."""

import torch
import torch.nn.functional as F

torch.manual_seed(0)
for dtype in (torch.bfloat16, torch.float16):
    for rows in (256, 4096):
        x, cotangent = torch.randn(rows, 64).to(dtype), torch.rand(rows, 64).to(dtype)
        weight = torch.ones(64, dtype=dtype, requires_grad=True)
        bias = torch.zeros(64, dtype=dtype, requires_grad=True)
        _, found = torch.autograd.grad(F.layer_norm(x, (64,), weight, bias), (weight, bias), cotangent)
        exact = cotangent.double().sum(0)  # the gradient of bias is the sum of the cotangent, nothing else
        error = float(((found.double() - exact) / exact).abs().max())
        print(
            f"{dtype} {rows} rows: gradient of bias {error:.1%} off; exact {exact[0]:.1f}, found {found[0].item():.1f}"
        )
