"""LLTM over a sequence written out in steps, each a method: wrong in one way when one method is overridden.

So a fault is one class with one override and one docstring that states the mistake. `Steps` hold one tensor for each
step: `X[t]` is [h_{t-1}, input_t], `d_gates[t]` is the gradient of that step's gates.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from backends.base import check_arguments
from spec.lltm_sequence import OPERATOR

Outputs = tuple[Tensor, Tensor]
Steps = list[Tensor]


class Sequence:
    """The honest scan: every step as `spec/lltm_sequence.py` states it."""

    def __call__(self, input: Tensor, weights: Tensor, bias: Tensor, h0: Tensor, c0: Tensor) -> Outputs:
        self.check(input, weights, bias, h0, c0)
        h, c_T = _Function.apply(self, input, weights, bias, h0, c0)
        return h, c_T

    def check(self, *inputs: Tensor) -> None:
        check_arguments(OPERATOR, *inputs)

    # forward

    def steps_of(self, input: Tensor) -> Steps:
        return list(input)

    def start(self, h0: Tensor, c0: Tensor) -> Outputs:
        return h0, c0

    def gates(self, X: Tensor, weights: Tensor, bias: Tensor) -> Tensor:
        return F.linear(X, weights, bias)

    def new_cell(self, cell: Tensor, candidate: Tensor, input_gate: Tensor) -> Tensor:
        return cell + candidate * input_gate

    def kept(self, h: Tensor, cell: Tensor) -> Outputs:
        """The state for the next step."""
        return h, cell

    def scan(
        self, input: Tensor, weights: Tensor, bias: Tensor, h0: Tensor, c0: Tensor
    ) -> tuple[Steps, Steps, Steps, Steps]:
        """(h_1, ..., h_T), (c_0, ..., c_T), X and gates of every step."""
        h, cell = self.start(h0, c0)
        states, cells, Xs, gates = [], [cell], [], []
        for x in self.steps_of(input):
            Xs.append(torch.cat([h, x], dim=1))
            gates.append(self.gates(Xs[-1], weights, bias))
            z_i, z_o, z_k = gates[-1].chunk(3, dim=1)
            cell = self.new_cell(cell, F.elu(z_k), torch.sigmoid(z_i))
            h, cell = self.kept(torch.tanh(cell) * torch.sigmoid(z_o), cell)
            states.append(h)
            cells.append(cell)
        return states, cells, Xs, gates

    def joined(self, states: Steps, h0: Tensor) -> Tensor:
        return torch.stack(states) if states else h0.new_zeros((0, *h0.shape))

    def c_T(self, cells: Steps) -> Tensor:
        return cells[-1].clone()

    # backward

    def cotangents(self, g_h: Tensor, g_c: Tensor) -> tuple[Steps, Tensor]:
        return list(g_h), g_c

    def carried(self, t: int, d_h: Tensor, d_cell: Tensor) -> Outputs:
        """The gradients that step t gets from the next step."""
        return d_h, d_cell

    def d_weights(self, d_gates: Steps, X: Steps, states: Steps) -> Tensor:
        return sum(d.t() @ x for d, x in zip(d_gates, X, strict=True))  # type: ignore[return-value]

    def d_bias(self, d_gates: Steps) -> Tensor:
        return sum(d.sum(0) for d in d_gates)  # type: ignore[return-value]

    def d_h0(self, d_h: Tensor) -> Tensor:
        return d_h

    def wanted(self, gradients: tuple[Tensor, ...], needs: tuple[bool, ...]) -> tuple[Tensor | None, ...]:
        return tuple(gradient if need else None for gradient, need in zip(gradients, needs, strict=True))

    def saved(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        return inputs

    def backward(self, inputs: tuple[Tensor, ...], g_h: Tensor, g_c: Tensor) -> tuple[Tensor, ...]:
        """All gradients, from the inputs alone: the scan is recomputed, so they have a graph."""
        input, weights, bias, h0, _ = inputs
        size = h0.shape[1]
        states, cells, X, gates = self.scan(*inputs)
        g, d_cell = self.cotangents(g_h, g_c)
        d_h = torch.zeros_like(h0)
        d_gates: Steps = [torch.empty(0)] * len(gates)
        for t in reversed(range(len(gates))):
            d_h, d_cell = self.carried(t, d_h, d_cell)
            z_i, z_o, z_k = gates[t].chunk(3, dim=1)
            i, o, k = torch.sigmoid(z_i), torch.sigmoid(z_o), F.elu(z_k)
            tanh_cell = torch.tanh(cells[t] + k * i)
            d = g[t] + d_h
            d_cell = d * o * (1 - tanh_cell**2) + d_cell
            slope = torch.exp(z_k.clamp(max=0))
            d_gates[t] = torch.cat([d_cell * k * i * (1 - i), d * tanh_cell * o * (1 - o), d_cell * i * slope], dim=1)
            d_h = d_gates[t] @ weights[:, :size]
        if not gates:
            return torch.zeros_like(input), torch.zeros_like(weights), torch.zeros_like(bias), d_h, d_cell
        d_input = torch.stack([d @ weights[:, size:] for d in d_gates])
        return d_input, self.d_weights(d_gates, X, states), self.d_bias(d_gates), self.d_h0(d_h), d_cell


class _Function(torch.autograd.Function):
    """Forward and backward by the steps of a sequence."""

    @staticmethod
    def forward(ctx: Any, sequence: Sequence, *inputs: Tensor) -> Outputs:
        ctx.sequence = sequence
        ctx.save_for_backward(*sequence.saved(*inputs))
        states, cells, *_ = sequence.scan(*inputs)
        return sequence.joined(states, inputs[3]), sequence.c_T(cells)

    @staticmethod
    def backward(ctx: Any, g_h: Tensor, g_c: Tensor) -> tuple[Tensor | None, ...]:
        sequence: Sequence = ctx.sequence
        gradients = sequence.backward(ctx.saved_tensors, g_h, g_c)
        return None, *sequence.wanted(gradients, ctx.needs_input_grad[1:])
