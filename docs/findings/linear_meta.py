"""F.linear on the CPU accepts a weight on the meta device, and returns memory that nobody has written."""

import torch
import torch.nn.functional as F

x, weight, bias = torch.ones(3, 5), torch.ones(2, 5, device="meta"), torch.ones(2)
for name, call in (
    ("F.linear(x, weight, bias)", lambda: F.linear(x, weight, bias)),
    ("F.linear(x, weight)", lambda: F.linear(x, weight)),
    ("x @ weight.t()", lambda: x @ weight.t()),
    ("x + weight[0]", lambda: x + weight[0]),
):
    try:
        result = call()
        print(f"{name} returned a tensor of shape {tuple(result.shape)} on {result.device}")
    except RuntimeError as error:
        print(f"{name} raised: {str(error).splitlines()[0]}")
