"""What the templates and variants must know of each operator: names, sizes as an author writes them, and shapes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from random import Random

#: Sizes that a fault does not depend on.
SMALL = (3, 9)


@dataclass(frozen=True)
class Facts:
    """`size` has the expression of each size in the source, `shapes` the two symbols of each matrix.

    `rows` are the symbols whose product is the number of rows, `width` is the last size of each output. `state` are
    pairs of an output and the input of its shape. `same` is an output and what it equals for the values `when`.
    `row_dim` is the dimension of the batch in inputs and outputs.
    """

    name: str
    tensors: tuple[str, ...]
    optional: tuple[str, ...]
    outputs: tuple[str, ...]
    size: Mapping[str, str]
    shapes: Mapping[str, tuple[str, str]]
    rows: tuple[str, ...]
    width: str
    state: tuple[str, str]
    same: tuple[str, str]
    when: tuple[str, str, float]
    row_dim: int = 0
    ranks: Mapping[str, int] | None = None

    def rank(self, output: str) -> int:
        """The number of dimensions of that output."""
        return (self.ranks or {}).get(output, 2)

    def sizes(self, rng: Random, rows: int | None = None, **fixed: int) -> dict[str, int]:
        """Small sizes, with these rows and these sizes."""
        drawn = {symbol: fixed.get(symbol, rng.randint(*SMALL)) for symbol in self.size}
        if rows is not None:
            steps = 1
            if "steps" in drawn:
                steps = next(count for count in (3, 2, 1) if rows % count == 0)
                drawn["steps"] = steps
            drawn["batch"] = rows // steps
        return drawn

    def count(self, sizes: Mapping[str, int]) -> int:
        """The number of rows."""
        return prod(sizes[symbol] for symbol in self.rows)


LLTM = Facts(
    name="lltm",
    tensors=("input", "weights", "bias", "old_h", "old_cell"),
    optional=(),
    outputs=("new_h", "new_cell"),
    size={"batch": "input.shape[0]", "input_features": "input.shape[1]", "state_size": "old_h.shape[1]"},
    shapes={
        "input": ("batch", "input_features"),
        "old_h": ("batch", "state_size"),
        "old_cell": ("batch", "state_size"),
    },
    rows=("batch",),
    width="state_size",
    state=("new_cell", "old_cell"),
    same=("new_cell", "old_cell"),
    when=("bias", "fill", -1000.0),
)
LLTM_SEQUENCE = Facts(
    name="lltm_sequence",
    tensors=("input", "weights", "bias", "h0", "c0"),
    optional=(),
    outputs=("h", "c_T"),
    size={
        "steps": "input.shape[0]",
        "batch": "input.shape[1]",
        "input_features": "input.shape[2]",
        "state_size": "h0.shape[1]",
    },
    shapes={"h0": ("batch", "state_size"), "c0": ("batch", "state_size")},
    rows=("steps", "batch"),
    width="state_size",
    state=("c_T", "c0"),
    same=("c_T", "c0"),
    when=("bias", "fill", -1000.0),
    row_dim=1,
    ranks={"h": 3},
)
MLP = Facts(
    name="mlp",
    tensors=("input", "hidden_weights", "hidden_bias", "output_weights", "output_bias"),
    optional=(),
    outputs=("output",),
    size={
        "batch": "input.shape[0]",
        "input_features": "input.shape[1]",
        "hidden_size": "hidden_weights.shape[0]",
        "output_size": "output_weights.shape[0]",
    },
    shapes={
        "input": ("batch", "input_features"),
        "hidden_weights": ("hidden_size", "input_features"),
        "output_weights": ("output_size", "hidden_size"),
    },
    rows=("batch",),
    width="output_size",
    state=("output", "input"),
    same=("output", "output_bias.expand_as(output)"),
    when=("hidden_bias", "fill", -1000.0),
)
LAYER_NORM = Facts(
    name="layer_norm",
    tensors=("input", "weight", "bias"),
    optional=("weight", "bias"),
    outputs=("output",),
    size={"batch": "input.shape[0]", "features": "input.shape[-1]"},
    shapes={"input": ("batch", "features")},
    rows=("batch",),
    width="features",
    state=("output", "input"),
    same=("output", "bias.expand_as(output)"),
    when=("weight", "fill", 0.0),
)
FACTS = {facts.name: facts for facts in (LLTM, LLTM_SEQUENCE, MLP, LAYER_NORM)}
