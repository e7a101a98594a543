"""On the CPU, log_softmax rounds its sum to the half type, and nll_loss adds up the losses of the rows in it."""

import torch
import torch.nn.functional as F

torch.manual_seed(0)
for dtype in (torch.bfloat16, torch.float16):
    x = torch.tensor([[4.0, 0.0]], dtype=dtype)
    found, exact = (F.log_softmax(each, -1)[0, 0].item() for each in (x, x.double()))
    print(f"{dtype} log_softmax of (4, 0): exact {exact:.5f}, found {found:.5f}, {abs(found / exact - 1):.0%} off")
    log_p, labels = F.log_softmax(torch.randn(256, 256), -1).to(dtype), torch.randint(256, (256,))
    found, exact = (F.nll_loss(each, labels).item() for each in (log_p, log_p.double()))
    print(f"{dtype} nll_loss of 256 rows: exact {exact:.4f}, found {found:.4f}, {abs(found / exact - 1):.2%} off")
