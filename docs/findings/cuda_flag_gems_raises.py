"""What raises in FlagGems: backward of logits that are not contiguous, empty batches, more than 65535 rows."""

from collections.abc import Callable

import flag_gems
import torch

device = "cuda"


def attempt(name: str, call: Callable[[], object]) -> None:
    """Say what a call raises."""
    try:
        call()
        print(f"{name}: no error")
    except (ValueError, ZeroDivisionError, RuntimeError) as error:
        print(f"{name}: {type(error).__name__}: {error}")


logits = torch.randn(16, 3, device=device).t().requires_grad_()
loss = flag_gems.cross_entropy_loss(logits, torch.arange(3, device=device))
attempt("backward of cross-entropy of transposed logits", lambda: torch.autograd.grad(loss, logits))

none, no_rows = torch.empty(0, 4, device=device), torch.empty(0, device=device)
attempt("cross-entropy of no rows", lambda: flag_gems.cross_entropy_loss(none, no_rows.long()))
attempt("log_softmax of no rows", lambda: flag_gems.log_softmax(none, -1))
attempt("backward of softmax of no rows", lambda: flag_gems.softmax_backward(none, none, -1, none.dtype))
attempt(
    "backward of LayerNorm of no rows",
    lambda: flag_gems.layer_norm_backward(none, none, [4], no_rows, no_rows, None, None, [True, False, False]),
)
many = torch.zeros(65536, 16, device=device)
attempt(
    "cross-entropy of 65536 rows",
    lambda: flag_gems.cross_entropy_loss(many, torch.zeros(65536, dtype=torch.int64, device=device)),
)
