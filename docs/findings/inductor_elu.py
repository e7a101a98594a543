"""Inductor on the CPU computes elu(x) as exp(x) - 1 where it is vectorised, and loses small arguments in float32."""

import torch
import torch.nn.functional as F

x = -torch.logspace(-9, -3, 7).repeat(16)
eager, compiled, exact = F.elu(x), torch.compile(F.elu)(x), torch.expm1(x.double())
for k in range(7):
    off = [float(abs(found[k] / exact[k] - 1)) for found in (eager, compiled)]
    print(f"elu({x[k]:.0e}): eager is off by {off[0]:.0e}, compiled by {off[1]:.0e}")
