"""Liger-Kernel's SwiGLU in float32: the relative error of silu grows with the distance from 0."""

import torch
import torch.nn.functional as F
from liger_kernel.transformers.functional import liger_swiglu

for at in (-1.0, -10.0, -30.0, -60.0):
    x = torch.linspace(at, at * 1.01, 1000, device="cuda").unsqueeze(0)
    exact = F.silu(x.double())
    errors = [
        float(((found - exact) / exact).abs().max()) for found in (liger_swiglu(x, torch.ones_like(x)), F.silu(x))
    ]
    print(f"silu near {at:.0f}, {exact[0, 0]:.0e}: liger_swiglu is {errors[0]:.1e} off, F.silu {errors[1]:.1e}")
