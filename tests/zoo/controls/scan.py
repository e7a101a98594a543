"""The linear recurrence, right but different: each control must pass every property that `gives_up` does not name."""

from __future__ import annotations

import torch
from torch import Tensor

from backends._python.scan import check_scan_arguments
from tests.zoo.honest.scan import Optional, Recurrence
from tests.zoo.registry import OLD_STYLE, control


@control(gives_up=OLD_STYLE)
class Honest(Recurrence):
    """The honest scan, the base of every fault."""


@control(gives_up=OLD_STYLE)
class GatesGradientOfTheRoundedStates(Recurrence):
    """The gradient of the gates is computed of the states as they were returned, which backward has saved."""

    def states_before(self, states: Tensor, start: Tensor) -> Tensor:
        return super().states_before(states.to(self.dtype).to(states.dtype), start)

    def finish(self, states: Tensor, tokens: Tensor) -> Tensor:
        self.dtype = tokens.dtype
        return super().finish(states, tokens)


def _wide(gates: Tensor, tokens: Tensor, initial: Optional) -> tuple[Tensor, Tensor]:
    """Gates and tokens for a scan from 0; the initial state is a part of the first token."""
    check_scan_arguments(gates, tokens, initial)
    dtype = torch.promote_types(tokens.dtype, torch.float32)
    a, x = gates.to(dtype), tokens.to(dtype)
    if initial is not None:
        x = torch.cat((a[..., :1] * initial.to(dtype).unsqueeze(-1) + x[..., :1], x[..., 1:]), -1)
    return a, x


def _own(states: Tensor, tokens: Tensor) -> Tensor:
    """The states in the dtype, in memory of their own: those of one step are the tokens themselves."""
    found = states.to(tokens.dtype)
    return found.clone() if tokens.shape[2] < 2 else found


@control
def by_doubling(gates: Tensor, tokens: Tensor, initial: Optional = None) -> Tensor:
    """A parallel scan in log2(length) passes, as Hillis and Steele have it: other products, other sums."""
    a, x = _wide(gates, tokens, initial)
    reach = 1
    while reach < x.shape[2]:
        x = torch.cat((x[..., :reach], a[..., reach:] * x[..., :-reach] + x[..., reach:]), -1)
        a = torch.cat((a[..., :reach], a[..., reach:] * a[..., :-reach]), -1)
        reach *= 2
    return _own(x, tokens)


def _halves(a: Tensor, x: Tensor) -> Tensor:
    """States from 0: those of pairs of steps, then the even ones between them, as Blelloch has it."""
    length = x.shape[2]
    if length < 2:
        return x
    even = length // 2 * 2
    pairs = _halves(a[..., :even:2] * a[..., 1:even:2], a[..., 1:even:2] * x[..., :even:2] + x[..., 1:even:2])
    between = a[..., 2::2] * pairs[..., : x[..., 2::2].shape[2]] + x[..., 2::2]
    firsts = torch.cat((x[..., :1], between), -1)
    woven = torch.stack((firsts[..., : even // 2], pairs), -1).flatten(-2)
    return torch.cat((woven, firsts[..., even // 2 :]), -1)


@control
def by_a_tree(gates: Tensor, tokens: Tensor, initial: Optional = None) -> Tensor:
    """A parallel scan over a tree of pairs, which needs half as many products."""
    return _own(_halves(*_wide(gates, tokens, initial)), tokens)


@control
def in_chunks(gates: Tensor, tokens: Tensor, initial: Optional = None) -> Tensor:
    """Chunks of 16 steps are scanned from 0; then each gets the state before it, times the product of its gates."""
    a, x = _wide(gates, tokens, initial)
    states, before = [], torch.zeros_like(x[..., :1])
    for gates_of, tokens_of in zip(a.split(16, -1), x.split(16, -1), strict=True):
        own = _halves(gates_of, tokens_of)
        states.append(own + gates_of.cumprod(-1) * before)
        before = states[-1][..., -1:]
    return torch.cat(states, -1).to(tokens.dtype)


@control
def everything_in_float64(gates: Tensor, tokens: Tensor, initial: Optional = None) -> Tensor:
    """Computed in double precision and rounded once: more accuracy than required is not wrong."""
    check_scan_arguments(gates, tokens, initial)  # before a complex tensor is converted
    a, x = _wide(gates.double(), tokens.double(), None if initial is None else initial.double())
    h, states = torch.zeros_like(x[:, :, :1]), []
    for a_t, x_t in zip(a.split(1, -1), x.split(1, -1), strict=True):
        h = a_t * h + x_t
        states.append(h)
    return torch.cat(states, -1).to(tokens.dtype)
