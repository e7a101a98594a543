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

import math
from collections.abc import Mapping

import torch
from torch import Tensor

from spec.contract import Case, Draw, Invariant, Operator, Sizes, TensorArg
from spec.forms import Formulas
from spec.formulas import either
from spec.rounding import stored, wide
from spec.rowwise import Change, Drawn, as_rows, case, families, ordinary, scaled


def one_by_one(a: Tensor, x: Tensor) -> Tensor:
    """The states from 0, step after step."""
    states = [torch.zeros_like(x[..., 0])] if x.shape[-1] else []
    for t in range(x.shape[-1]):
        states.append(a[..., t] * states[-1] + x[..., t])
    return torch.stack(states[1:], -1) if states else x.clone()


def by_doubling(a: Tensor, x: Tensor) -> Tensor:
    """The states from 0: after k passes each one has the last 2^k terms."""
    reach = 1
    while reach < x.shape[-1]:
        x = torch.cat((x[..., :reach], a[..., reach:] * x[..., :-reach] + x[..., reach:]), -1)
        a = torch.cat((a[..., :reach], a[..., reach:] * a[..., :-reach]), -1)
        reach *= 2
    return x


def scanned(a: Tensor, x: Tensor, initial: Tensor | None = None) -> Tensor:
    """h, in the dtype of its arguments; `initial` counts as a part of the first token."""
    if initial is not None and x.shape[-1]:
        x = torch.cat((a[..., :1] * initial.unsqueeze(-1) + x[..., :1], x[..., 1:]), -1)
    return either(lambda: one_by_one(a, x), lambda: by_doubling(a, x))


def intermediates(gates: Tensor, tokens: Tensor, initial: Tensor | None = None) -> dict[str, Tensor]:
    """The states, before they are rounded."""
    with wide(gates, tokens, *(() if initial is None else (initial,))) as named:
        return {"states": scanned(*named)}


def forward(gates: Tensor, tokens: Tensor, initial: Tensor | None = None) -> tuple[Tensor]:
    """(states,), of the shape of the tokens."""
    return (stored(intermediates(gates, tokens, initial)["states"], tokens.dtype),)


def vjp(
    cotangents: tuple[Tensor, ...], gates: Tensor, tokens: Tensor, initial: Tensor | None = None
) -> Mapping[str, Tensor]:
    """Gradients by name, by the formulas of the module's docstring."""
    dtype, h = tokens.dtype, intermediates(gates, tokens, initial)["states"]
    start = torch.zeros_like(tokens[..., :1]) if initial is None else initial.unsqueeze(-1)
    with wide(gates, cotangents[0], start, stored(h, dtype)) as (a, g, first, rounded):
        after = torch.cat((a[..., 1:], torch.zeros_like(a[..., :1])), -1)
        l = scanned(after.flip(-1), g.flip(-1)).flip(-1)  # noqa: E741
        before = either(lambda: h, lambda: rounded)
        d_gates = l * torch.cat((first, before), -1)[..., : h.shape[-1]]
        d_initial = (a[..., :1] * l[..., :1]).sum(-1)
    return {"gates": stored(d_gates, dtype), "tokens": stored(l, dtype), "initial": stored(d_initial, dtype)}


def _gates(low: float, high: float) -> Change:
    def change(drawn: Drawn, draw: Draw, _dtype: torch.dtype) -> None:
        drawn["gates"] = draw.uniform(tuple(drawn["gates"].shape), low, high)

    return change


def _resets(drawn: Drawn, draw: Draw, _dtype: torch.dtype) -> None:
    drawn["gates"] *= draw.choice(tuple(drawn["gates"].shape), (0.0, 1.0, 1.0))


def _cancelling(drawn: Drawn, draw: Draw, _dtype: torch.dtype) -> None:
    drawn["gates"].fill_(1.0)
    tokens = drawn["tokens"]
    tokens[..., 1::2] = -tokens[..., : 2 * (tokens.shape[-1] // 2) : 2]
    tokens += 2.0**-6 * draw.normal(tuple(tokens.shape))


def _nan(drawn: Drawn, _draw: Draw, _dtype: torch.dtype) -> None:
    rows = as_rows(drawn["tokens"])
    for row in range(min(len(rows), 3)):
        rows[row, row % rows.shape[1] :][:1] = math.nan


_CHANGES: dict[str, tuple[str, Change]] = {
    "long-memory": ("gates of nearly 1: a state has hundreds of terms", _gates(0.98, 1.0)),
    "both-signs": ("gates between -1 and 1, whose states change their sign", _gates(-1.0, 1.0)),
    "growing": ("gates of 1 to 1.01, so that the state grows", _gates(1.0, 1.01)),
    "forgetting": ("gates of 0.001, whose products underflow", _gates(0.0005, 0.0015)),
    "resets": ("gates of exactly 0 in a third of the steps, where a new sequence begins", _resets),
    "cancelling": (
        "gates of 1 and tokens that take back the one before: sums far smaller than their terms",
        _cancelling,
    ),
    "large-values": ("states near the range of float16", scaled("tokens", 4096.0)),
    "non-finite": ("NaN in three rows: it must not reach the steps before it, nor other rows", _nan),
}


def _form(name: str, cases: tuple[Case, ...], *forms: Operator, initial: bool = False) -> Operator:
    shape = ("batch", "channels", "length")
    gates, tokens = TensorArg("gates", shape, low="0", high="1", uniform=True), TensorArg("tokens", shape)
    inputs = (gates, tokens, TensorArg("initial", shape[:2], optional=True)) if initial else (gates, tokens)
    elements = "*".join(shape)

    def counting(sizes: Sizes, draw: Draw, _: torch.dtype) -> Drawn:
        drawn = {arg.name: draw.choice(arg.shape_for(sizes), (-1.0, 1.0)) for arg in inputs}
        return drawn | {"gates": torch.ones_like(drawn["gates"])}

    def without_memory(sizes: Sizes, draw: Draw, _: torch.dtype) -> Drawn:
        drawn = ordinary(inputs, sizes, draw)
        return drawn | {"gates": torch.zeros_like(drawn["gates"])}

    def counted(_gates: Tensor, tokens: Tensor, *initial: Tensor) -> dict[str, Tensor]:
        return {"states": tokens.cumsum(-1) + (initial[0].unsqueeze(-1) if initial else 0)}

    return Formulas("scan", ("gates", "tokens", "initial"), forward, vjp, intermediates).in_form(
        name,
        inputs,
        outputs=(TensorArg("states", shape),),
        # The reference goes step by step, and the allowance evaluates it 17 times: long cases are narrow.
        sequential=("length",),
        forms=forms,
        cases=cases,
        families=families(inputs, _CHANGES),
        invariants=(
            Invariant("counting", "gates of 1 add up tokens of 1 and -1", counting, counted, bitwise=True),
            Invariant(
                "no-memory",
                "gates of 0 leave the tokens as they are",
                without_memory,
                lambda _gates, tokens, *_: {"states": tokens},
                bitwise=True,
            ),
        ),
        elementwise=(f"3*{elements}", f"5*{elements}"),
        saved=(TensorArg("states_before", shape),),
    )


def _case(name: str, batch: int, channels: int, length: int, origin: str, *tags: str) -> Case:
    return case(name, {"batch": batch, "channels": channels, "length": length}, origin, *tags)


_TAIL = "tail of a vector, a warp or a chunk"
_FEW = (
    _case("usual", 2, 64, 32, "a small recurrent model", "size", "benchmark"),
    _case("small", 2, 3, 5, "fits gradcheck; every size another", "size", "small"),
    _case("square", 3, 3, 3, "all sizes equal, so that a transposed index fits", "size", "small"),
    _case("one-step", 2, 3, 1, "a step of decoding", "size"),
    _case("no-steps", 2, 3, 0, "an empty sequence", "size"),
    _case("length-257", 1, 2, 257, "a tail behind a chunk of 256", "size"),
)
_CASES = (
    *_FEW,
    _case("no-batch", 0, 3, 5, "the last, empty batch of a data loader", "size"),
    *(_case(f"length-{n}", 1, 2, n, _TAIL, "size") for n in (2, 7, 8, 31, 33, 64, 65, 129, 1025)),
    *(_case(f"channels-{n}", 2, n, 5, "tail of a tile of channels", "size") for n in (31, 33, 65, 129)),
    _case("batch-70000", 70000, 1, 2, "more rows than gridDim.y can hold (65535)", "size", "grid"),
    _case("recurrentgemma-2b", 1, 2560, 4, "recurrentgemma-2b/config.json: lru_width", "size", "model"),
    _case("mamba-130m", 1, 24576, 3, "mamba-130m-hf/config.json: intermediate_size, state_size", "size", "model"),
    _case("more-than-2^31", 2**20 + 3, 1030, 2, "above 2^31 elements", "large"),
    _case("recurrentgemma-2b-prompt", 1, 2560, 256, "the same lru_width, 256 tokens", "benchmark", "model"),
)
OPERATOR = _form("from-zero", _CASES, _form("initial", _FEW, initial=True))
