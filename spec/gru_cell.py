r"""GRU cell: one step of a gated recurrent unit, with the arguments of torch.gru_cell.

    gru_cell(input, old_h, w_ih, w_hh, b_ih=None, b_hh=None) -> new_h

Shapes are in `spec.recurrent`. With 0 for a bias that is None and the columns in the order r, z, n:

    of_input = input @ w_ih.T + b_ih                            (batch, 3*state_size), columns a_r, a_z, a_n
    of_state = old_h @ w_hh.T + b_hh                            (batch, 3*state_size), columns s_r, s_z, s_n
    r        = sigmoid(a_r + s_r)                               the reset gate
    z        = sigmoid(a_z + s_z)                               the update gate
    n        = tanh(a_n + r s_n)                                the candidate
    new_h    = n + z (old_h - n) = (1 - z) n + z old_h          (batch, state_size)

The reset gate multiplies s_n, bias included, as in PyTorch and cuDNN; in the paper it multiplies old_h before the
product. The vector-Jacobian product, with the cotangent g of new_h:

    d_n        = g (1 - z) (1 - n^2)                            the gradient of a_n
    d_r        = d_n s_n r (1 - r),     d_z = g (old_h - n) z (1 - z)
    d_of_input = [d_r, d_z, d_n],       d_of_state = [d_r, d_z, d_n r]
    d_input    = d_of_input @ w_ih,     d_old_h = d_of_state @ w_hh + g z
    d_w_ih     = d_of_input.T @ input,  d_w_hh  = d_of_state.T @ old_h
    d_b_ih     = d_of_input and d_b_hh = d_of_state, summed over the batch

Precision. Products add up in float32 for float16 and bfloat16. Every step may be rounded to the dtype, as where the
cell is composed of operations; a fused cell rounds new_h and what it saves.

Source: K. Cho et al., "Learning Phrase Representations using RNN Encoder-Decoder" (2014); torch.nn.GRUCell for the
place of the reset gate. The derivation is ours; `tests/spec` checks it.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from spec.contract import TensorArg
from spec.forms import Formulas
from spec.formulas import either
from spec.recurrent import affine, contract, model
from spec.values import gru_cell as values

Optional = Tensor | None


def intermediates(
    input: Tensor, old_h: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Optional = None, b_hh: Optional = None
) -> dict[str, Tensor]:
    """The steps of `forward` in order: two of (batch, 3*state_size), then three of (batch, state_size)."""
    of_input, of_state = affine(input, w_ih, b_ih), affine(old_h, w_hh, b_hh)
    (a_r, a_z, a_n), (s_r, s_z, s_n) = of_input.chunk(3, 1), of_state.chunk(3, 1)
    r, z = torch.sigmoid(a_r + s_r), torch.sigmoid(a_z + s_z)
    gates = {"of_input": of_input, "of_state": of_state, "reset_gate": r, "update_gate": z}
    return {**gates, "candidate": torch.tanh(a_n + r * s_n)}


def forward(**tensors: Tensor) -> tuple[Tensor]:
    """(new_h,), (batch, state_size)."""
    _, _, _, z, n = intermediates(**tensors).values()
    old_h = tensors["old_h"]
    return (either(lambda: n + z * (old_h - n), lambda: (1 - z) * n + z * old_h),)


def vjp(
    cotangents: tuple[Tensor, ...],
    input: Tensor,
    old_h: Tensor,
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Optional = None,
    b_hh: Optional = None,
) -> Mapping[str, Tensor]:
    """Gradients by name, by the formulae of the module's docstring."""
    (g,) = cotangents
    _, of_state, r, z, n = intermediates(input, old_h, w_ih, w_hh, b_ih, b_hh).values()
    s_n = of_state.chunk(3, 1)[2]
    d_n = g * (1 - z) * (1 - n * n)
    d_r = d_n * s_n * (r * (1 - r))
    d_z = g * (old_h - n) * (z * (1 - z))
    d_of_input, d_of_state = torch.cat([d_r, d_z, d_n], 1), torch.cat([d_r, d_z, d_n * r], 1)
    return {
        "input": d_of_input @ w_ih,
        "old_h": d_of_state @ w_hh + g * z,
        "w_ih": d_of_input.t() @ input,
        "w_hh": d_of_state.t() @ old_h,
        "b_ih": d_of_input.sum(0),
        "b_hh": d_of_state.sum(0),
    }


_GATES = ("reset_gate", "update_gate", "candidate")
OPERATOR = contract(
    Formulas("gru_cell", ("input", "old_h", "w_ih", "w_hh", "b_ih", "b_hh"), forward, vjp, intermediates),
    gates=_GATES,
    states=("old_h",),
    outputs=("new_h",),
    models=(
        model("tacotron", 12, 384, 256, "fatchord/WaveRNN, models/tacotron.py: attn_rnn, 256 + 128 to 256", "model"),
        model("rnnsearch", 80, 620, 1000, "Bahdanau et al. (2015), appendix A.2: m 620, n 1000", "benchmark", "model"),
    ),
    invariants=values.invariants,
    # Forward: the sums of two gates, both parts of the candidate and old_h in, new_h out. Backward: those five and a
    # cotangent in, the gradients of three gates, of s_n and, without its product, of old_h out.
    elementwise=(6, 11),
    saved=(
        TensorArg("of_state", ("batch", "3*state_size")),
        *(TensorArg(name, ("batch", "state_size")) for name in (*_GATES, "difference")),
    ),
)
