r"""Scan: the linear recurrence of first order over a sequence, as in Mamba, RG-LRU, GILR and minGRU.

    scan(gates, tokens, initial=None) -> states

All are (batch, channels, length), the layout of the package accelerated-scan; `initial` is (batch, channels), 0 if it
is None. With gates of 1 it is a cumulative sum. For each row and channel, h_{-1} = initial, and

    h_t = a_t h_{t-1} + x_t                 for t = 0, ..., length - 1;    states = [h_0, h_1, ...]

The vector-Jacobian product, with the cotangent g of states, is the same recurrence backwards:

    l_t       = g_t + a_{t+1} l_{t+1}       for t = length - 1, ..., 0;    behind the end l = 0
    d_tokens  = l
    d_gates_t = l_t h_{t-1}
    d_initial = a_0 l_0                     0 where there are no steps

Precision. h and l are computed in float32 for float16 and bfloat16, from step to step, and rounded once where they are
returned. d_gates may be computed of the rounded states. The order is free: the recurrence is associative, so
(a, x) then (b, y) is (a b, b x + y), and a parallel scan has other products and sums. The reference states two orders,
one after another and by doubling.

Source: G. Blelloch, "Prefix sums and their applications" (1990), section 1.4; A. Gu, T. Dao, "Mamba" (2023);
proger/accelerated-scan. The derivation is ours; `tests/spec` checks it.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from spec.blocks import stored, wide
from spec.contract import Operator, TensorArg
from spec.doubling import by_doubling, gradient_of_gates
from spec.forms import Cases, Formulas, Optional, Tensors
from spec.formulas import either
from spec.rowwise import families
from spec.sizes import scan as sizes
from spec.values import scan as values


def one_by_one(a: Tensor, x: Tensor) -> Tensor:
    """The states from 0, step after step."""
    states = [torch.zeros_like(x[..., 0])] if x.shape[-1] else []
    for t in range(x.shape[-1]):
        states.append(a[..., t] * states[-1] + x[..., t])
    return torch.stack(states[1:], -1) if states else x.clone()


def scanned(a: Tensor, x: Tensor) -> Tensor:
    """The states from 0, in the dtype of the arguments."""
    return either(lambda: one_by_one(a, x), lambda: by_doubling(a, x))


def _begun(a: Tensor, x: Tensor, initial: Optional = None) -> Tensor:
    """The tokens of a scan from 0: the initial state is a part of the first one."""
    if initial is None or not x.shape[-1]:
        return x
    return torch.cat((a[..., :1] * initial.unsqueeze(-1) + x[..., :1], x[..., 1:]), -1)


def intermediates(gates: Tensor, tokens: Tensor, initial: Optional = None) -> dict[str, Tensor]:
    """The states, before they are rounded."""
    with wide(gates, tokens, *(() if initial is None else (initial,))) as (a, x, *first):
        return {"states": scanned(a, _begun(a, x, *first))}


def forward(gates: Tensor, tokens: Tensor, initial: Optional = None) -> tuple[Tensor]:
    """(states,), of the shape of the tokens."""
    return (stored(intermediates(gates, tokens, initial)["states"], tokens.dtype),)


def vjp(cotangents: Tensors, gates: Tensor, tokens: Tensor, initial: Optional = None) -> Mapping[str, Tensor]:
    """Gradients by name, by the formulas of the module's docstring."""
    dtype, h = tokens.dtype, intermediates(gates, tokens, initial)["states"]
    start = torch.zeros_like(tokens[..., :1]) if initial is None else initial.unsqueeze(-1)
    with wide(gates, tokens, cotangents[0], start, stored(h, dtype)) as (a, x, g, first, rounded):
        after = torch.cat((a[..., 1:], torch.zeros_like(a[..., :1])), -1)
        l = scanned(after.flip(-1), g.flip(-1)).flip(-1)  # noqa: E741
        front, of_rounded = (torch.cat((first, y), -1)[..., : h.shape[-1]] for y in (h, rounded))

        def of_parts() -> Tensor:
            """l and h may cancel before their product, and their parts only in the sum of the products."""
            of_first = torch.cat((l[..., :1] * front[..., :1], torch.zeros_like(l[..., 1:])), -1)
            parts = gradient_of_gates(a, _begun(a, x, first.squeeze(-1)), g) + of_first
            return parts + l * (of_rounded - front)

        d_gates = either(lambda: l * front, of_parts)
        d_initial = (a[..., :1] * l[..., :1]).sum(-1)
    return {"gates": stored(d_gates, dtype), "tokens": stored(l, dtype), "initial": stored(d_initial, dtype)}


def _form(name: str, cases: Cases, *forms: Operator, initial: bool = False) -> Operator:
    shape = ("batch", "channels", "length")
    gates, tokens = TensorArg("gates", shape, low="0", high="1", uniform=True), TensorArg("tokens", shape)
    inputs = (gates, tokens, TensorArg("initial", shape[:2], optional=True)) if initial else (gates, tokens)
    elements = "*".join(shape)
    return Formulas("scan", ("gates", "tokens", "initial"), forward, vjp, intermediates).in_form(
        name,
        inputs,
        outputs=(TensorArg("states", shape),),
        # The reference goes step by step, and the allowance evaluates it 17 times: long cases are narrow.
        sequential=("length",),
        forms=forms,
        cases=cases,
        families=families(inputs, values.CHANGES),
        invariants=values.invariants(inputs),
        elementwise=(f"3*{elements}", f"5*{elements}"),
        saved=(TensorArg("states_before", shape),),
    )


OPERATOR = _form("from-zero", sizes.CASES, _form("initial", sizes.FEW, initial=True))
