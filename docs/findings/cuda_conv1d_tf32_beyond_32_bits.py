"""Depthwise F.conv1d on CUDA in float32: above 2^31 elements the gradient of weight has the precision of TF32."""

import torch
import torch.nn.functional as F

torch.manual_seed(0)
channels, length, width = 64, 132, 4
for rows in (131072, 262147):  # below and above 2^31 elements
    x = torch.randn(rows, channels, length, device="cuda")
    cotangent = torch.randn(rows, channels, length - width + 1, device="cuda")
    exact = torch.zeros(channels, 1, width, dtype=torch.float64, device="cuda")
    for part, some in zip(x.split(16384), cotangent.split(16384), strict=True):
        for tap in range(width):
            exact[:, 0, tap] += torch.einsum("bct,bct->c", part[..., tap : tap + some.shape[2]].double(), some.double())
    for allowed in (True, False):
        torch.backends.cudnn.allow_tf32 = allowed  # True is the default
        weight = torch.randn(channels, 1, width, device="cuda", requires_grad=True)
        (found,) = torch.autograd.grad(F.conv1d(x, weight, groups=channels), weight, cotangent)
        off = float((found - exact).abs().max() / exact.abs().max())
        print(f"{x.numel():.2e} elements, cudnn.allow_tf32={allowed}: gradient of weight {off:.1e} off")
