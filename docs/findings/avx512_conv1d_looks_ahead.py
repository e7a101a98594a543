"""F.conv1d of one channel in bfloat16 on a CPU with AVX512: a step also sees the one behind its window, times 0."""

import torch
import torch.nn.functional as F

for dtype in (torch.bfloat16, torch.float32):
    for channels in (1, 2):
        x = torch.ones(1, channels, 16, dtype=dtype)
        x[..., 8] = torch.nan
        padded = F.pad(x, (3, 0))  # causal: step t sees the steps t - 3 to t
        output = F.conv1d(padded, torch.ones(channels, 1, 4, dtype=dtype), groups=channels)
        steps = output[0, 0].isnan().nonzero().flatten().tolist()
        print(f"{dtype}, {channels} channels, NaN at step 8: the output is NaN at steps {steps}")
