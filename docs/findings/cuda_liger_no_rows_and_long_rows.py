"""Liger-Kernel raises for an empty batch in cross-entropy, and for rows of more than 65536 elements in softmax."""

import torch
from liger_kernel.transformers import functional as liger

logits = torch.empty(0, 8, device="cuda", requires_grad=True)
for name, call in (
    ("cross-entropy of no rows", lambda: liger.liger_cross_entropy(logits, torch.empty(0, dtype=torch.int64).cuda())),
    ("softmax of 65537 elements", lambda: liger.liger_softmax(torch.zeros(1, 65537, device="cuda"))),
):
    try:
        call()
        print(f"{name}: a result")
    except RuntimeError as error:
        print(f"{name} raised RuntimeError: {str(error).partition('.')[0]}")
