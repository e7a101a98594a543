"""fla-core's RMSNorm and LayerNorm raise in backward for a batch of no rows."""

import torch
from fla.modules.norm.layernorm import layer_norm, rms_norm

weight = torch.ones(4, device="cuda", requires_grad=True)
for norm in (rms_norm, layer_norm):
    x = torch.empty(0, 4, device="cuda", requires_grad=True)
    output = norm(x, weight, None)
    try:
        torch.autograd.grad(output.sum(), (x, weight))
        print(f"{norm.__name__}: backward of no rows gave gradients")
    except ZeroDivisionError as error:
        print(f"{norm.__name__}: backward of no rows raised ZeroDivisionError: {error}")
