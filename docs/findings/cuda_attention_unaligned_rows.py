"""F.scaled_dot_product_attention on CUDA of rows that are not aligned in memory, or have stride 0."""

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel


def padded(x: torch.Tensor, around: float) -> torch.Tensor:
    """The same values in rows that are three elements longer in memory."""
    memory = torch.full((*x.shape[:-1], x.shape[-1] + 3), around, dtype=x.dtype, device=x.device)
    memory[..., :-3] = x
    return memory[..., :-3]


def expanded(x: torch.Tensor) -> torch.Tensor:
    """The first of the batch for all, with stride 0."""
    return x[:1].expand_as(x)


def told(*inputs: torch.Tensor) -> str:
    """How far the output is off, or what was raised."""
    output = F.scaled_dot_product_attention(*inputs)
    if output is None or not output.numel():
        return f"returned {'None' if output is None else 'an empty tensor'}"
    with sdpa_kernel(SDPBackend.MATH):
        exact = F.scaled_dot_product_attention(*(x.detach().double() for x in inputs))
    return f"is off by {float((output.detach() - exact).abs().max()):.1e}"


torch.manual_seed(0)
for dtype in (torch.float32, torch.float16, torch.bfloat16):
    query, key, value = (torch.randn(3, 8, tokens, 8).to("cuda", dtype) for tokens in (33, 3, 3))
    for layout, inputs in (
        ("contiguous", (query, key, value)),
        ("query expanded", (expanded(query), key, value)),
        ("key padded with 7", (query, padded(key, 7.0), value)),
        ("query expanded, key padded with 7", (expanded(query), padded(key, 7.0), value)),
        ("query expanded, key padded with NaN", (expanded(query), padded(key, torch.nan), value)),
        ("no rows", (query[:0], key[:0], value[:0])),
    ):
        leaves = [x.detach().requires_grad_() for x in inputs]
        try:
            outcome = told(*leaves)
        except RuntimeError as error:
            outcome = f"raised {str(error).splitlines()[0]}"
        kernel = SDPBackend(torch._fused_sdp_choice(*leaves)).name.split("_")[0].lower()
        print(f"{dtype}, {layout}: {kernel} {outcome}")
