"""Stand-ins for the published packages: right functions with the names and signatures that the adapters call.

Each is the source of a few modules, which `written` puts into a folder for sys.path. Their arithmetic is PyTorch's, so
an adapter that passes a wrong argument, or drops one, gives a wrong result.
"""

from __future__ import annotations

from pathlib import Path

_LIGER = """
import torch
import torch.nn.functional as F

def liger_rms_norm(X, W, eps, offset=0.0, casting_mode="llama", in_place=True):
    assert not in_place and offset == 0.0 and casting_mode == "llama"
    return F.rms_norm(X, X.shape[-1:], W, eps)

def liger_fused_add_rms_norm(X, R, W, eps, offset=0.0, casting_mode="llama", in_place=True):
    assert not in_place and offset == 0.0 and casting_mode == "llama"
    return F.rms_norm(X + R, W.shape, W, eps), X + R

def liger_layer_norm(X, W, B, eps):
    return F.layer_norm(X, W.shape, W, B, eps)

def liger_softmax(x):
    return F.softmax(x, -1)

def liger_swiglu(a, b):
    return F.silu(a) * b

def liger_geglu(a, b):
    return F.gelu(a, approximate="tanh") * b

def liger_cross_entropy(input, target, weight=None, size_average=None, ignore_index=-100, reduce=None,
                        reduction="mean", label_smoothing=0.0):
    return F.cross_entropy(input, target, ignore_index=ignore_index, label_smoothing=label_smoothing)

def liger_rope(q, k, cos, sin, position_ids=None, unsqueeze_dim=1, rotary_dim=None):
    assert rotary_dim == q.shape[-1] == k.shape[-1] == 2 * cos.shape[-1] and k.shape[1] and k.shape[2] == q.shape[2]
    def turned(x):  # (batch, heads, tokens, width)
        a, b = x.chunk(2, -1)
        return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)
    return turned(q), turned(k)
"""

_LIGER_OPS = """
import torch.nn.functional as F

class LigerEmbeddingFunction:
    @staticmethod
    def apply(embeddings, indices):
        return F.embedding(indices, embeddings)
"""

_FLA_NORM = """
import torch.nn.functional as F

def rms_norm(x, weight, bias, residual=None, eps=1e-5, prenorm=False, residual_in_fp32=False):
    assert bias is None
    total = x if residual is None else x + residual
    y = F.rms_norm(total, x.shape[-1:], weight, eps)
    return (y, total) if prenorm else y

def layer_norm(x, weight, bias, residual=None, eps=1e-5, prenorm=False, residual_in_fp32=False, is_rms_norm=False):
    return F.layer_norm(x, x.shape[-1:], weight, bias, eps)
"""

_FLA_ACTIVATIONS = """
import torch.nn.functional as F

def swiglu(x, y):
    return F.silu(x) * y
"""

_FLA_CROSS_ENTROPY = """
import torch.nn.functional as F

def cross_entropy_loss(logits, target, label_smoothing=0.0, logit_scale=1.0, lse_square_scale=0.0,
                       logit_softcapping=None, ignore_index=-100, inplace_backward=False, process_group=None):
    assert not inplace_backward
    rows = F.cross_entropy(
        logits.float(), target, ignore_index=ignore_index, label_smoothing=label_smoothing, reduction="none"
    )
    return rows, rows * 0
"""

_FLA_ROTARY = """
import torch

def rotary_embedding(x, cos, sin, interleaved=False, inplace=False, seqlen_offsets=0):
    assert not inplace
    a, b = (x[..., ::2], x[..., 1::2]) if interleaved else x.chunk(2, -1)
    cos, sin = cos[:, None], sin[:, None]
    turned = a * cos - b * sin, b * cos + a * sin
    return torch.stack(turned, -1).flatten(-2) if interleaved else torch.cat(turned, -1)
"""

_QUACK = """
import torch
import torch.nn.functional as F

class _Bounded(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()
    @staticmethod
    def backward(ctx, gradient):
        if gradient.shape[-1] > 128 * 1024 and gradient.dtype == torch.float32:
            raise ValueError("RMSNormBackward does not support N > 128k with dtype >= 32 bits")
        return gradient

def rmsnorm(x, weight=None, bias=None, residual=None, out_dtype=None, residual_dtype=None, eps=1e-6, prenorm=False):
    total = _Bounded.apply(x if residual is None else x + residual)
    y = F.rms_norm(total, x.shape[-1:], weight, eps)
    return (y, total) if prenorm else y

def cross_entropy(x, target, lse_partial=None, weight=None, ignore_index=-100, reduction="mean",
                  inplace_backward=False):
    assert not inplace_backward
    return F.cross_entropy(x.float(), target, ignore_index=ignore_index)
"""

_FLAG_GEMS = """
import torch
import torch.nn.functional as F

ops = torch.ops.aten

def layer_norm(input, normalized_shape, weight=None, bias=None, eps=1e-5):
    return ops.native_layer_norm(input, normalized_shape, weight, bias, eps)

def layer_norm_backward(grad_out, input, normalized_shape, mean, rstd, weight=None, bias=None, output_mask=None):
    return ops.native_layer_norm_backward(grad_out, input, normalized_shape, mean, rstd, weight, bias, output_mask)

def rms_norm(x, normalized_shape, weight, eps=1e-5):
    return F.rms_norm(x, normalized_shape, weight, eps)

def softmax(self, dim, half_to_float=False):
    return ops._softmax(self, dim, half_to_float)

def softmax_backward(grad_output, output, dim, input_dtype):
    return ops._softmax_backward_data(grad_output, output, dim, input_dtype)

def log_softmax(self, dim, half_to_float=False):
    return ops._log_softmax(self, dim, half_to_float)

def log_softmax_backward(grad_output, output, dim, input_dtype):
    return ops._log_softmax_backward_data(grad_output, output, dim, input_dtype)

def cross_entropy_loss(inp, target, weight=None, reduction="mean", ignore_index=-100, label_smoothing=0.0):
    return F.cross_entropy(inp, target, ignore_index=ignore_index, label_smoothing=label_smoothing)

def embedding(weight, indices, padding_idx=-1, scale_grad_by_freq=False, sparse=False):
    return ops.embedding(weight, indices, padding_idx, scale_grad_by_freq, sparse)

def embedding_backward(grad_outputs, indices, num_weights, padding_idx=-1, scale_grad_by_freq=False, sparse=False):
    assert grad_outputs.is_contiguous()
    return ops.embedding_dense_backward(grad_outputs, indices, num_weights, padding_idx, scale_grad_by_freq)

def silu_and_mul(A, B):
    return F.silu(A) * B

def gelu_and_mul(x, y, approximate="none"):
    return F.gelu(x, approximate=approximate) * y
"""

#: By the folder of the backend: the files of the stand-in for its package. What that needs has none: a stand-in for
#: Triton would be one for torch too.
PACKAGES: dict[str, dict[str, str]] = {
    "liger": {
        "liger_kernel/__init__.py": "",
        "liger_kernel/ops.py": _LIGER_OPS,
        "liger_kernel/transformers/__init__.py": "",
        "liger_kernel/transformers/functional.py": _LIGER,
    },
    "fla": {
        "fla/__init__.py": "",
        "fla/modules/__init__.py": "",
        "fla/modules/norm/__init__.py": "",
        "fla/modules/norm/layernorm.py": _FLA_NORM,
        "fla/modules/activations.py": _FLA_ACTIVATIONS,
        "fla/modules/fused_cross_entropy.py": _FLA_CROSS_ENTROPY,
        "fla/modules/rotary.py": _FLA_ROTARY,
    },
    "quack": {"quack.py": _QUACK},
    "flag_gems": {"flag_gems.py": _FLAG_GEMS},
}


def written(backend: str, folder: Path, change: tuple[str, str] = ("", "")) -> None:
    """Write the stand-in for the backend's package into the folder, with one text replaced by another."""
    before, after = change
    seen = False
    for name, source in PACKAGES[backend].items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        seen |= before in source
        path.write_text(source.replace(before, after) if before else source)
    assert seen, f"{before!r} is in no file of the stand-in for {backend}"
