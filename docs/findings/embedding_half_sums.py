"""F.embedding on the CPU adds up the gradient of an entry in the half type: the sum stops growing."""

import torch
import torch.nn.functional as F

torch.manual_seed(0)
for dtype in (torch.bfloat16, torch.float16):
    for places in (256, 4096):
        weight = torch.zeros(2, 64, dtype=dtype, requires_grad=True)
        cotangent = torch.rand(places, 64).to(dtype)
        output = F.embedding(torch.zeros(places, dtype=torch.long), weight)
        (found,) = torch.autograd.grad(output, weight, cotangent)
        exact = cotangent.double().sum(0)  # the gradient of entry 0 is the sum over all its places
        error = float(((found[0].double() - exact) / exact).abs().max())
        print(f"{dtype} {places} places: {error:.1%} off; exact {exact[0]:.1f}, found {found[0, 0].item():.1f}")
