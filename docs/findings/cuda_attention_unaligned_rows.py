"""F.scaled_dot_product_attention on CUDA of rows that are not aligned in memory, or have stride 0, by kernel."""

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

torch.manual_seed(0)
CHOICES = (
    None,
    SDPBackend.FLASH_ATTENTION,
    SDPBackend.EFFICIENT_ATTENTION,
    SDPBackend.CUDNN_ATTENTION,
    SDPBackend.MATH,
)


def padded(x: torch.Tensor, around: float) -> torch.Tensor:
    """The same values in rows that are three elements longer in memory."""
    memory = torch.full((*x.shape[:-1], x.shape[-1] + 3), around, dtype=x.dtype, device=x.device)
    memory[..., :-3] = x
    return memory[..., :-3]


def expanded(x: torch.Tensor) -> torch.Tensor:
    """The first row of the batch for all, with stride 0."""
    return x[:1].expand_as(x)


def attention(choice: SDPBackend | None, *inputs: torch.Tensor) -> torch.Tensor | None:
    """The output of the kernel, or of the one that PyTorch chooses."""
    if choice is None:
        return F.scaled_dot_product_attention(*inputs)
    with sdpa_kernel(choice):
        return F.scaled_dot_product_attention(*inputs)


def told(choice: SDPBackend | None, *inputs: torch.Tensor) -> str:
    """How far the output is off, or what was raised."""
    name = "default" if choice is None else choice.name.split("_")[0].lower()
    try:
        output = attention(choice, *inputs)
    except RuntimeError as error:
        return f"{name} raised {str(error).splitlines()[0][:44]}"
    if output is None:
        return f"{name} returned None"
    if not output.numel():
        return f"{name} returned an empty tensor"
    exact = attention(SDPBackend.MATH, *(x.detach().double() for x in inputs))
    return f"{name} off by {float((output.double() - exact).abs().max()):.1e}"


for dtype in (torch.float32, torch.float16):
    query, key, value = (torch.randn(3, 8, tokens, 8).to("cuda", dtype) for tokens in (33, 3, 3))
    for layout, inputs in (
        ("contiguous", (query, key, value)),
        ("key padded with 7", (query, padded(key, 7.0), value)),
        ("key padded with NaN", (query, padded(key, torch.nan), value)),
        ("query expanded, key padded with NaN", (expanded(query), padded(key, torch.nan), value)),
        ("no rows", (query[:0], key[:0], value[:0])),
    ):
        print(f"{dtype}, {layout}")
        for choice in CHOICES:
            print(f"  {told(choice, *(x.detach().requires_grad_() for x in inputs))}")
