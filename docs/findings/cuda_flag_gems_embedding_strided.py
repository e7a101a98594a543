"""FlagGems' embedding_backward reads indices as if they were contiguous: gradients go to entries that are not named."""

import flag_gems
import torch

torch.manual_seed(0)
pairs = torch.tensor([[0, 2], [1, 2], [0, 2], [1, 2]], device="cuda")
cotangent = torch.randn(4, 5, device="cuda")
for name, indices in (("contiguous", pairs[:, 0].contiguous()), ("a column", pairs[:, 0])):
    found = flag_gems.embedding_backward(cotangent, indices, 3)
    exact = torch.zeros(3, 5, dtype=torch.float64, device="cuda").index_add_(0, indices, cotangent.double())
    off = (found - exact).abs().amax(1)
    print(f"indices are {name}: {int((off > 1e-5).sum())} of 3 entries have a wrong gradient, by up to {off.max():.1f}")
