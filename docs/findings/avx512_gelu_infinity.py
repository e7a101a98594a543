"""F.gelu on a CPU with AVX512 is NaN at infinity in float32 and bfloat16; by its formula it is infinity."""

import torch
import torch.nn.functional as F

for dtype in (torch.float32, torch.bfloat16, torch.float64):
    one, many = torch.tensor([torch.inf], dtype=dtype), torch.full((16,), torch.inf, dtype=dtype)
    print(f"{dtype}: gelu of infinity is {F.gelu(many)[0].item()}, and alone in its tensor {F.gelu(one)[0].item()}")
large = torch.full((16,), 2.0**127)
print(f"torch.float32: gelu({large[0]:.1e}) is {F.gelu(large)[0]:.1e}")
