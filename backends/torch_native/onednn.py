"""In which half types oneDNN computes on this processor; in the others PyTorch's own loops run."""

from __future__ import annotations

import torch

_ASKED = {torch.float16: "_is_mkldnn_fp16_supported", torch.bfloat16: "_is_mkldnn_bf16_supported"}


def computes_in(dtype: torch.dtype) -> bool:
    """Whether oneDNN does: in bfloat16 with AVX512, in float16 with its own instructions."""
    # A build without oneDNN lacks the operators.
    return torch._C._has_mkldnn and bool(getattr(torch.ops.mkldnn, _ASKED[dtype])())
