"""F.scaled_dot_product_attention on the CPU returns 0 for a query with NaN; by its formula the result is NaN."""

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

torch.manual_seed(0)
query, key, value = (torch.randn(1, 1, 3, 4) for _ in range(3))
query[0, 0, 1, 0] = torch.nan
for name, backend in (("flash, the default", SDPBackend.FLASH_ATTENTION), ("math", SDPBackend.MATH)):
    with sdpa_kernel(backend):
        output = F.scaled_dot_product_attention(query, key, value)
    print(f"{name}: the output of the query with NaN is {output[0, 0, 1].tolist()}")
