"""F.group_norm on the CPU keeps mean and 1/deviation in the half type, so its gradient is that of another mean."""

import torch
import torch.nn.functional as F

torch.manual_seed(0)
for dtype, mean in ((torch.bfloat16, 0.0), (torch.bfloat16, 20.0), (torch.float16, 0.0), (torch.float16, 160.0)):
    x, cotangent = (torch.randn(4, 8, 16, 16) + mean).to(dtype), torch.rand(4, 8, 16, 16).to(dtype)
    found, exact, rounded_once = (
        torch.autograd.grad(F.group_norm(leaf, 2), leaf, cotangent.to(leaf.dtype))[0].double()
        for leaf in (x.to(kind).requires_grad_() for kind in (dtype, torch.float64, torch.float32))
    )
    errors = [float((each - exact).norm() / exact.norm()) for each in (found, rounded_once.to(dtype).double())]
    print(f"{dtype} mean {mean:.0f}, deviation 1: gradient {errors[0]:.3%} off; rounded once {errors[1]:.3%}")
