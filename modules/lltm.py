"""LLTM, one step and over a sequence, as torch.nn.Modules that run on any backend."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from modules.base import OnBackend

State = tuple[Tensor, Tensor]


class Recurrent(OnBackend):
    """The parameters of the cell, and the call of the backend's function with them.

    Parameters: `weights` (3*state_size, state_size + input_features) and `bias` (3*state_size,). They are the same for
    every backend, for one step and for a sequence, so a state dict of one loads into another.

    `backend` and `emulated` are those of `modules.base.OnBackend`.
    """

    def __init__(
        self,
        input_features: int,
        state_size: int,
        backend: str = "python-autograd",
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
        emulated: bool = False,
    ) -> None:
        super().__init__(backend, emulated)
        self.input_features = input_features
        self.state_size = state_size
        self.weights = nn.Parameter(
            torch.empty(3 * state_size, state_size + input_features, device=device, dtype=dtype)
        )
        self.bias = nn.Parameter(torch.empty(3 * state_size, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw both parameters uniformly from +-1/sqrt(state_size), as torch.nn.LSTMCell does."""
        bound = self.state_size**-0.5 if self.state_size > 0 else 0.0
        for parameter in self.parameters():
            nn.init.uniform_(parameter, -bound, bound)

    def _run(self, operator: str, input: Tensor, state: State | None) -> State:
        """Call the backend's `operator` with input, parameters and state; None is a state of zeros."""
        if state is None:
            shape = (input.shape[-2], self.state_size)
            state = (input.new_zeros(shape), input.new_zeros(shape))  # two: torch.compile rejects one tensor twice
        result: State = self.function(operator, input.device)(input, self.weights, self.bias, *state)
        return result

    def extra_repr(self) -> str:
        """The arguments of the constructor, for print()."""
        return f"{self.input_features}, {self.state_size}, {self.where()}"


class LLTM(Recurrent):
    """One step of the Long-Long-Term-Memory cell: an LSTM cell without a forget gate, with an ELU candidate.

    Parameters and arguments are those of every `Recurrent` module.
    """

    def forward(self, input: Tensor, state: State | None = None) -> State:
        """(new_h, new_cell), each (batch, state_size).

        `input` is (batch, input_features). `state` is (old_h, old_cell), each (batch, state_size), or None for zeros.
        """
        return self._run("lltm", input, state)


class LLTMSequence(Recurrent):
    """The Long-Long-Term-Memory cell over a sequence, as torch.nn.LSTM is to torch.nn.LSTMCell.

    Parameters and arguments are those of every `Recurrent` module, so the state dict of an `LLTM` loads.
    """

    def forward(self, input: Tensor, state: State | None = None) -> tuple[Tensor, State]:
        """(h, (h_T, c_T)): h of every step (steps, batch, state_size), and the final state, each (batch, state_size).

        `input` is (steps, batch, input_features). `state` is (h0, c0), each (batch, state_size), or None for zeros.
        """
        h, c_T = self._run("lltm_sequence", input, state)
        h_T = h[-1] if len(h) else input.new_zeros(c_T.shape) if state is None else state[0]
        return h, (h_T, c_T)
