"""QuACK's RMSNorm and cross-entropy of rows of five elements, and backward of logits that are part of wider rows."""

import torch
from quack import cross_entropy, rmsnorm

labels = torch.tensor([0, 1], device="cuda")
for dtype in (torch.float32, torch.bfloat16):
    x = torch.randn(2, 5, device="cuda").to(dtype)
    for name, call in (
        ("rmsnorm", lambda x=x: rmsnorm(x, torch.ones_like(x[0]))),
        ("cross_entropy", lambda x=x: cross_entropy(x, labels)),
    ):
        try:
            call()
            print(f"{dtype} {name}: a result")
        except Exception as error:
            print(f"{dtype} {name} raised {type(error).__name__}")

logits = torch.randn(2, 8, device="cuda")[:, :5].requires_grad_()
loss = cross_entropy(logits, labels)
try:
    torch.autograd.grad(loss, logits)
    print("backward of logits with gaps between the rows: a result")
except ValueError as error:
    print(f"backward of logits with gaps between the rows raised ValueError: {str(error).partition(' on ')[0]}")
