"""Attention over a key that is read with strides rounded to 16 bytes, on the CPU: the errors are those of cuDNN."""

import torch
import torch.nn.functional as F

torch.manual_seed(0)
for dtype in (torch.float32, torch.float16, torch.bfloat16):
    query, key, value = (torch.randn(3, 8, tokens, 8).to(dtype).double() for tokens in (33, 3, 3))
    if dtype == torch.float32:
        continue  # drawn so that the others are those of the script above
    memory = torch.full((3, 8, 3, 11), 7.0, dtype=torch.float64)
    memory[..., :8] = key
    for name, each in (("query", query), ("query expanded", query[:1].expand_as(query))):
        exact = F.scaled_dot_product_attention(each, key, value)
        for way, strides in (("right", (264, 33, 11, 1)), ("rounded down to multiples of 8", (264, 32, 8, 1))):
            found = F.scaled_dot_product_attention(each, memory.as_strided(key.shape, strides), value)
            print(f"{dtype}, {name}, strides of key {way}: off by {float((found - exact).abs().max()):.1e}")
