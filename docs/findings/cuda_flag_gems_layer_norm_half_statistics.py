"""FlagGems' LayerNorm keeps mean and 1/deviation in the half type: the gradient is that of another mean."""

import flag_gems
import torch
import torch.nn.functional as F

torch.manual_seed(0)
for mean in (0.0, 10.0, 100.0):
    x = (torch.randn(64, 64, device="cuda") + mean).bfloat16()
    cotangent = torch.randn(64, 64, device="cuda").bfloat16()
    _, *kept = flag_gems.layer_norm(x, [64])
    found, _, _ = flag_gems.layer_norm_backward(cotangent, x, [64], *kept, None, None, [True, False, False])
    leaf = x.double().requires_grad_()
    (exact,) = torch.autograd.grad(F.layer_norm(leaf, [64]), leaf, cotangent.double())
    errors = [float((each.double() - exact).norm() / exact.norm()) for each in (found, exact.bfloat16())]
    print(f"{kept[0].dtype}, mean {mean:.0f}: gradient {errors[0]:.2%} off; rounded once {errors[1]:.2%}")
