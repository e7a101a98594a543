"""F.rms_norm on CUDA: of a row with an infinite element all results are NaN, at some widths."""

import torch
import torch.nn.functional as F

for width in (4, 5, 1024, 1025):
    x = torch.ones(1, width)
    x[0, 0] = float("inf")
    for device in ("cpu", "cuda"):
        found = F.rms_norm(x.to(device), (width,))[0]
        print(f"width {width} on {device}: of the infinite element {found[0].item()}, of the others {found[1].item()}")
