"""FlagGems' log_softmax of a row with NaN: the other elements are those of a row without it."""

import flag_gems
import torch
import torch.nn.functional as F

x = torch.tensor([[torch.nan, 1.0, 2.0]], device="cuda")
for name, output in (("F.log_softmax", F.log_softmax(x, -1)), ("flag_gems.log_softmax", flag_gems.log_softmax(x, -1))):
    print(f"{name}: {int(output.isnan().sum())} of 3 elements are NaN; the last one is {output[0, 2].item():.4f}")
