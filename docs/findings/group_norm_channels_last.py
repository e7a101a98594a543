"""F.group_norm on the CPU takes the variance of a channels_last input as E[x^2] - mean^2, which cancels."""

import torch
import torch.nn.functional as F

torch.manual_seed(0)
noise = torch.randn(2, 8, 16, 16)
for mean in (0.0, 100.0, 1000.0, 4000.0):
    x = noise + mean
    exact = F.group_norm(x.double(), 2)
    for name, layout in (("contiguous", torch.contiguous_format), ("channels_last", torch.channels_last)):
        found = F.group_norm(x.to(memory_format=layout), 2)
        print(f"mean {mean:.0f}, deviation 1, {name}: off by {float((found - exact).abs().max()):.1e}")
