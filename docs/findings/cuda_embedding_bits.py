"""F.embedding on CUDA gives other bits of the gradient in each call, and the same if determinism is asked for."""

import torch
import torch.nn.functional as F

torch.manual_seed(0)
for entries, places in ((5, 70000), (1000, 70000), (5, 3000)):
    weight = torch.zeros(entries, 2, device="cuda", requires_grad=True)
    indices = torch.randint(entries, (places,), device="cuda")
    cotangent = torch.randn(places, 2, device="cuda")
    for deterministic in (False, True):
        torch.use_deterministic_algorithms(deterministic)
        found = [torch.autograd.grad(F.embedding(indices, weight), weight, cotangent)[0] for _ in range(10)]
        exact = torch.zeros(entries, 2, dtype=torch.float64, device="cpu").index_add(
            0, indices.cpu(), cotangent.cpu().double()
        )
        different = sum(not torch.equal(found[0], each) for each in found[1:])
        off = float((found[0].cpu() - exact).abs().max())
        print(f"{entries} entries, {places} places, use_deterministic_algorithms({deterministic}): ", end="")
        print(f"{different} of 9 repetitions differ; off by {off:.1e}")
