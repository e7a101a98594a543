"""F.log_softmax on the CPU rounds the sum of exponentials to the half type: log-probabilities near 0 are lost."""

import torch
import torch.nn.functional as F

for dtype in (torch.bfloat16, torch.float16):
    for lead in (3.0, 5.0, 8.0):
        x = torch.tensor([[lead, 0.0]], dtype=dtype)
        found, exact = (F.log_softmax(each, -1)[0, 0].item() for each in (x, x.double()))
        print(f"{dtype} log_softmax of ({lead}, 0): exact {exact:.7f}, found {found:.7f}")
