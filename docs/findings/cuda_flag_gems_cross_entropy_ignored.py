"""FlagGems' cross-entropy reads memory before the logits where a label is ignored; if NaN is there, so is the loss."""

import flag_gems
import torch
import torch.nn.functional as F

torch.manual_seed(0)
memory = torch.zeros(100 + 4 * 16, device="cuda")
logits, labels = memory[100:].view(4, 16), torch.tensor([1, -100, 2, -100], device="cuda")
logits.normal_()
exact = F.cross_entropy(logits.double(), labels).item()
for before in (0.0, torch.nan):
    memory[:100] = before
    loss = flag_gems.cross_entropy_loss(logits, labels).item()
    print(f"{before} in the memory before the logits: loss {loss:.4f}, and exactly {exact:.4f}")
