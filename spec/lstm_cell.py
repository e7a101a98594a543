r"""LSTM cell: one step of a long short-term memory with a forget gate, with the arguments of torch.lstm_cell.

    lstm_cell(input, old_h, old_cell, w_ih, w_hh, b_ih=None, b_hh=None) -> (new_h, new_cell)

Shapes are in `spec.recurrent`. With 0 for a bias that is None and the columns of gates in the order i, f, k, o:

    gates    = input @ w_ih.T + b_ih + old_h @ w_hh.T + b_hh    (batch, 4*state_size)
    i, f, o  = sigmoid of their columns                         the input, forget and output gate
    k        = tanh of its columns                              the candidate
    new_cell = f old_cell + i k                                 (batch, state_size)
    new_h    = o tanh(new_cell)

The vector-Jacobian product, with the cotangents g_h, g_c of the outputs:

    d_new_cell = g_h o (1 - tanh(new_cell)^2) + g_c
    d_gates    = [d_new_cell k i (1 - i),  d_new_cell old_cell f (1 - f),  d_new_cell i (1 - k^2),
                  g_h tanh(new_cell) o (1 - o)]
    d_old_cell = d_new_cell f
    d_input    = d_gates @ w_ih,        d_old_h = d_gates @ w_hh
    d_w_ih     = d_gates.T @ input,     d_w_hh  = d_gates.T @ old_h
    d_b_ih     = d_b_hh = d_gates summed over the batch

Precision. Products add up in float32 for float16 and bfloat16. Every step may be rounded to the dtype, as where the
cell is composed of operations; a fused cell rounds new_h, new_cell and what it saves.

Source: S. Hochreiter, J. Schmidhuber, "Long Short-Term Memory" (1997); F. A. Gers et al., "Learning to Forget" (2000);
torch.nn.LSTMCell. The derivation is ours; `tests/spec` checks it.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from spec.contract import TensorArg
from spec.forms import Formulas
from spec.recurrent import affine, contract, model
from spec.values import lstm_cell as values

Optional = Tensor | None


def intermediates(
    input: Tensor,
    old_h: Tensor,
    old_cell: Tensor,
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Optional = None,
    b_hh: Optional = None,
) -> dict[str, Tensor]:
    """The steps of `forward` in order: gates (batch, 4*state_size), then five of (batch, state_size)."""
    gates = affine(input, w_ih, b_ih) + affine(old_h, w_hh, b_hh)
    z_i, z_f, z_k, z_o = gates.chunk(4, 1)
    i, f, k, o = torch.sigmoid(z_i), torch.sigmoid(z_f), torch.tanh(z_k), torch.sigmoid(z_o)
    steps = {"gates": gates, "input_gate": i, "forget_gate": f, "candidate": k, "output_gate": o}
    return {**steps, "new_cell": f * old_cell + i * k}


def forward(**tensors: Tensor) -> tuple[Tensor, Tensor]:
    """(new_h, new_cell), each (batch, state_size)."""
    steps = intermediates(**tensors)
    return steps["output_gate"] * torch.tanh(steps["new_cell"]), steps["new_cell"]


def vjp(
    cotangents: tuple[Tensor, ...],
    input: Tensor,
    old_h: Tensor,
    old_cell: Tensor,
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Optional = None,
    b_hh: Optional = None,
) -> Mapping[str, Tensor]:
    """Gradients by name, by the formulae of the module's docstring."""
    g_h, g_c = cotangents
    _, i, f, k, o, new_cell = intermediates(input, old_h, old_cell, w_ih, w_hh, b_ih, b_hh).values()
    t = torch.tanh(new_cell)
    d_new_cell = g_h * o * (1 - t * t) + g_c
    d_z_i = d_new_cell * k * (i * (1 - i))
    d_z_f = d_new_cell * old_cell * (f * (1 - f))
    d_z_k = d_new_cell * i * (1 - k * k)
    d_z_o = g_h * t * (o * (1 - o))
    d_gates = torch.cat([d_z_i, d_z_f, d_z_k, d_z_o], 1)
    return {
        "input": d_gates @ w_ih,
        "old_h": d_gates @ w_hh,
        "old_cell": d_new_cell * f,
        "w_ih": d_gates.t() @ input,
        "w_hh": d_gates.t() @ old_h,
        "b_ih": d_gates.sum(0),
        "b_hh": d_gates.sum(0),
    }


_GATES = ("input_gate", "forget_gate", "candidate", "output_gate")
OPERATOR = contract(
    Formulas(
        "lstm_cell",
        ("input", "old_h", "old_cell", "w_ih", "w_hh", "b_ih", "b_hh"),
        forward,
        vjp,
        intermediates,
    ),
    gates=_GATES,
    states=("old_h", "old_cell"),
    outputs=("new_h", "new_cell"),
    models=(
        model("tacotron-2", 4, 768, 1024, "NVIDIA/tacotron2, model.py: attention_rnn, 256 + 512 to 1024", "model"),
        model("awd-lstm", 80, 400, 1152, "fastai, awd_lstm_lm_config: emb_sz 400, n_hid 1152", "benchmark", "model"),
    ),
    invariants=values.invariants,
    # Forward: four gates and old_cell in, both outputs out. Backward: those five and two cotangents in, the gradients
    # of the gates and of old_cell out.
    elementwise=(7, 12),
    saved=tuple(TensorArg(name, ("batch", "state_size")) for name in (*_GATES, "tanh_of_new_cell")),
)
