"""F.group_norm on CUDA rounds mean and 1/deviation to the half type, and normalises with what that leaves of them."""

import torch
import torch.nn.functional as F

torch.manual_seed(0)
for dtype, mean in ((torch.bfloat16, 0.0), (torch.bfloat16, 20.0), (torch.float16, 0.0), (torch.float16, 160.0)):
    x = (torch.randn(4, 8, 16, 16) + mean).to("cuda", dtype)
    cotangent = torch.rand(4, 8, 16, 16).to("cuda", dtype)
    results = []
    for kind in (dtype, torch.float32, torch.float64):
        leaf = x.to(kind, copy=True).requires_grad_()
        output = F.group_norm(leaf, 2)
        (gradient,) = torch.autograd.grad(output, leaf, cotangent.to(kind))
        results.append(
            [each.detach().to(dtype if kind != torch.float64 else kind).double() for each in (output, gradient)]
        )
    found, rounded_once, exact = results
    errors = [
        [float((got - right).norm() / right.norm()) for got, right in zip(some, exact, strict=True)]
        for some in (found, rounded_once)
    ]
    groups = x.double().view(4, 2, -1)
    statistics = (groups.mean(-1, keepdim=True), (groups.var(-1, unbiased=False, keepdim=True) + 1e-5).rsqrt())
    center, scale = (each.to(dtype).double() for each in statistics)
    by_hand = ((groups - center) * scale).view_as(x)
    off = float((found[0] - by_hand).norm() / by_hand.norm())
    print(f"{dtype} mean {mean:.0f}, deviation 1: output {errors[0][0]:.3%} off, gradient {errors[0][1]:.3%} off")
    print(f"  rounded once: output {errors[1][0]:.3%} off, gradient {errors[1][1]:.3%} off")
    print(f"  output against that of rounded statistics: {off:.3%} off")
