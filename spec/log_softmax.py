r"""The logarithm of the softmax of each row: log_softmax(input) -> output, over the last dimension, of any rank.

For a row x, with the largest element and sums over it (`spec.softmax` has the first steps):

    shifted = x - max(x)
    output  = shifted - log(sum(exp(shifted)))

max(x) and the logarithm are subtracted one after the other: their sum would lose digits where the largest element is
large.

The vector-Jacobian product, from the output. Let g be its cotangent, with the sum over the row:

    d_input = g - exp(output) sum(g)

Precision. For float16 and bfloat16, all of this is computed in float32 and rounded once; the exponential may be that of
the rounded output. A row that holds +inf or NaN is NaN; an element of -inf stays -inf.

Source: `torch.log_softmax`. The derivation is ours; `tests/spec` checks it.
"""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor

from spec.blocks import stored, wide
from spec.forms import Formulas
from spec.softmax import intermediates, of_rows


def forward(input: Tensor) -> tuple[Tensor]:
    """(output,), of the shape of the input."""
    shifted, _, total = intermediates(input).values()
    with wide():
        output = shifted - total.log()
    return (stored(output, input.dtype),)


def vjp(cotangents: tuple[Tensor, ...], input: Tensor) -> Mapping[str, Tensor]:
    """The gradient by name, by the formula of the module's docstring."""
    with wide(*forward(input), *cotangents) as (output, g):
        d_input = g - output.exp() * g.sum(-1, keepdim=True)
    return {"input": stored(d_input, input.dtype)}


OPERATOR = of_rows(
    Formulas("log_softmax", ("input",), forward, vjp, intermediates),
    lambda input: input,
    "rows whose exponentials are 1 and 0 are their own logarithm",
)
