"""F.embedding on CUDA rounds the gradient of an entry to the half type while it adds it up, up to 3072 indices."""

import torch
import torch.nn.functional as F

torch.manual_seed(0)
for dtype in (torch.bfloat16, torch.float16):
    for places in (32, 256, 3072, 3073):
        weight = torch.zeros(2, 64, dtype=dtype, device="cuda", requires_grad=True)
        cotangent = torch.rand(places, 64).to("cuda", dtype)
        output = F.embedding(torch.zeros(places, dtype=torch.long, device="cuda"), weight)
        (found,) = torch.autograd.grad(output, weight, cotangent)
        exact = cotangent.double().sum(0)  # the gradient of entry 0 is the sum over all its places
        once = exact.to(dtype).double()
        errors = [float(((each - exact) / exact).abs().max()) for each in (found[0].double(), once)]
        print(f"{dtype} {places} places: {errors[0]:.2%} off; rounded once {errors[1]:.2%}")
