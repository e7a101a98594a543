"""The linear recurrence written out in steps, each a method: wrong in one way when one is overridden.

So a fault is one class with one override and one docstring that states the mistake.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from backends._python.scan import check_scan_arguments

Optional = Tensor | None


class Recurrence:
    """The honest scan: every step as `spec/scan.py` states it, half types in float32."""

    def __call__(self, gates: Tensor, tokens: Tensor, initial: Optional = None) -> Tensor:
        check_scan_arguments(gates, tokens, initial)
        return _Function.apply(self, gates, tokens, initial)

    def wide(self, tensor: Tensor) -> Tensor:
        return tensor.to(torch.promote_types(tensor.dtype, torch.float32))

    # forward

    def start(self, initial: Optional, x: Tensor) -> Tensor:
        """(batch, channels): the state before the first step."""
        return x.new_zeros(x.shape[:2]) if initial is None else self.wide(initial)

    def new_state(self, a: Tensor, h: Tensor, x: Tensor) -> Tensor:
        return a * h + x

    def kept(self, h: Tensor, t: int) -> Tensor:
        """The state of step t for the next one."""
        return h

    def scanned(self, a: Tensor, x: Tensor, start: Tensor) -> Tensor:
        """All states, in order."""
        h, states = start, []
        for t in range(x.shape[2]):
            h = self.new_state(a[..., t], h, x[..., t])
            states.append(h)
            h = self.kept(h, t)
        return torch.stack(states, -1) if states else x.clone()

    def states(self, gates: Tensor, tokens: Tensor, initial: Optional) -> Tensor:
        x = self.wide(tokens)
        return self.scanned(self.wide(gates), x, self.start(initial, x))

    def finish(self, states: Tensor, tokens: Tensor) -> Tensor:
        return states.to(tokens.dtype)

    # backward

    def gates_behind(self, a: Tensor) -> Tensor:
        """For each step the gate of the next one, 0 for the last."""
        return torch.cat((a[..., 1:], torch.zeros_like(a[..., :1])), -1)

    def passed_back(self, a: Tensor, g: Tensor) -> Tensor:
        """l: what each step gets of its own cotangent and of the steps behind it."""
        turned = self.gates_behind(a).flip(-1), g.flip(-1)
        return Recurrence.scanned(self, *turned, g.new_zeros(g.shape[:2])).flip(-1)

    def states_before(self, states: Tensor, start: Tensor) -> Tensor:
        return torch.cat((start.unsqueeze(-1), states), -1)[..., :-1]

    def d_gates(self, l: Tensor, before: Tensor) -> Tensor:  # noqa: E741
        return l * before

    def d_tokens(self, l: Tensor) -> Tensor:  # noqa: E741
        return l

    def d_initial(self, a: Tensor, l: Tensor) -> Tensor:  # noqa: E741
        return (a[..., :1] * l[..., :1]).sum(-1)


class _Function(torch.autograd.Function):
    """Forward and backward by the steps of a recurrence. Backward recomputes from the saved inputs: it has a graph."""

    @staticmethod
    def forward(ctx: Any, steps: Recurrence, gates: Tensor, tokens: Tensor, initial: Optional) -> Tensor:
        ctx.steps = steps
        ctx.save_for_backward(gates, tokens, initial)
        return steps.finish(steps.states(gates, tokens, initial), tokens)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Optional, ...]:
        steps: Recurrence = ctx.steps
        gates, tokens, initial = ctx.saved_tensors
        a, start = steps.wide(gates), steps.start(initial, steps.wide(tokens))
        back = steps.passed_back(a, steps.wide(g))
        before = steps.states_before(steps.states(gates, tokens, initial), start)
        d_initial = None if initial is None else steps.d_initial(a, back).to(g.dtype)
        return None, steps.d_gates(back, before).to(g.dtype), steps.d_tokens(back).to(g.dtype), d_initial
