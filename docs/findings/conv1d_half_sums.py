"""Depthwise F.conv1d on the CPU in float16 adds up its gradients in float16: over the taps, and over the rows."""

import torch
import torch.nn.functional as F

torch.manual_seed(0)
for dtype in (torch.float16, torch.bfloat16):
    for rows in (256, 4096):
        x, cotangent = torch.ones(rows, 8, 1, dtype=dtype, requires_grad=True), torch.rand(rows, 8, 1).to(dtype)
        weight = torch.ones(8, 1, 1, dtype=dtype, requires_grad=True)
        (found,) = torch.autograd.grad(F.conv1d(x, weight, groups=8), weight, cotangent)
        exact = cotangent.double().sum((0, 2))  # the gradient of a filter of one tap over ones
        error = float(((found.double().flatten() - exact) / exact).abs().max())
        print(f"{dtype} {rows} rows: gradient of weight {error:.2%} off")
    x, weight = torch.ones(1, 2, 9, dtype=dtype, requires_grad=True), torch.ones(2, 1, 3, dtype=dtype)
    cotangent = torch.tensor([1.0, -1.0, 2.0**-12]).to(dtype).repeat(2, 3).unsqueeze(0)
    (found,) = torch.autograd.grad(F.conv1d(x, weight, padding=1, groups=2), x, cotangent)
    print(f"{dtype} gradient of input, {cotangent[0, 0, :3].sum().item():.6f}: found {found[0, 0, 1:-1].tolist()}")
