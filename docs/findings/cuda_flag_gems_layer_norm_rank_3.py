"""FlagGems' layer_norm_backward takes the first dimension for all rows: the gradient of a tensor of rank 3 is wrong."""

import flag_gems
import torch
import torch.nn.functional as F

torch.manual_seed(0)
x, cotangent = torch.randn(2, 2, 3, 8, device="cuda")
y, mean, rstd = flag_gems.layer_norm(x, [8])
# Without weight and bias, whose gradients would be written beyond their ends.
found, _, _ = flag_gems.layer_norm_backward(cotangent, x, [8], mean, rstd, None, None, [True, False, False])
leaf = x.double().requires_grad_()
(exact,) = torch.autograd.grad(F.layer_norm(leaf, [8]), leaf, cotangent.double())
off = (found.double() - exact).abs() > 1e-4 * exact.abs().max()
print(f"the output is right: {torch.allclose(y.double(), F.layer_norm(x.double(), [8]), atol=1e-5)}")
print(f"{int(off.sum())} of {off.numel()} elements of the gradient are wrong")
