r"""LayerNorm: each row normalised to mean 0 and variance 1, then scaled and shifted, with PyTorch's signature.

    layer_norm(input, normalized_shape, weight=None, bias=None, eps=1e-5) -> output

`normalized_shape` gives the last dimensions of `input`, N elements in all. The dimensions before them, any number or
none, are the rows. For a row x of N elements, with weight w and bias b of shape `normalized_shape` (1 and 0 if they are
None):

    mean     = sum(x) / N
    variance = sum((x - mean)^2) / N                            biased; in two passes, since E[x^2] - mean^2 cancels
    rstd     = (variance + eps)^(-1/2)
    xhat     = (x - mean) rstd
    output   = xhat w + b

The vector-Jacobian product. Let g be the cotangent of output and h = g w that of xhat. With d mean/dx_i = 1/N and
d rstd/dx_i = -rstd^3 (x_i - mean) / N, the chain rule gives, with sums over the row:

    d_input  = rstd (h - sum(h)/N - xhat sum(h xhat)/N)
    d_weight = g xhat, summed over all rows
    d_bias   = g, summed over all rows

Precision. For float16 and bfloat16, mean, variance, rstd, xhat and the difference in d_input are computed in float32;
for the other dtypes, in the dtype itself. xhat and h may then be rounded to the dtype, as in layers that are composed
of operations. The last operations are rounded to the dtype: xhat w + b, g xhat, the product with rstd, and the sums
over rows. An implementation that computes its statistics in half precision is wrong. The variance may come from two
passes or from Welford's update, and xhat from (x - mean) rstd or from x rstd - mean rstd. In both cases the mean may be
rounded anew for each element.

Source: J. L. Ba, J. R. Kiros, G. E. Hinton, "Layer Normalization" (2016); torch.nn.functional.layer_norm for the
signature and the semantics. The derivation is ours; `tests/spec` checks it against autograd, central differences,
50-digit arithmetic and a symbolic derivation.
"""

from __future__ import annotations

from torch import Tensor

from spec.blocks import stored, wide
from spec.contract import FLOAT32, Operator, TensorArg
from spec.forms import Cases, Tensors
from spec.normalized import Form, normalised, refusals
from spec.sizes import layer_norm as sizes
from spec.values import layer_norm as values


class _LayerNorm(Form):
    """The formulas, with the attributes and tensors of a form."""

    def forward(self, input: Tensor, *affine: Tensor) -> tuple[Tensor]:
        """(output,), of the shape of the input."""
        weight, bias = self.affine(affine)
        output = stored(normalised(input, self.dims, self.eps)[0], input.dtype)
        output = output if weight is None else output * weight
        return ((output if bias is None else output + bias).to(input.dtype),)

    def intermediates(self, input: Tensor, *_: Tensor) -> dict[str, Tensor]:
        """rstd, with the normalised dimensions kept as 1, then xhat, of the shape of the input."""
        xhat, rstd = normalised(input, self.dims, self.eps)
        return {"rstd": rstd, "xhat": xhat}

    def vjp(self, inputs: Tensors, cotangents: Tensors) -> Tensors:
        """Gradients of input and of the weight and bias that are passed, by the formulae of the module's docstring."""
        (g,), (input, *affine) = cotangents, inputs
        weight, bias = self.affine(affine)
        xhat, rstd = normalised(input, self.dims, self.eps)
        with wide(g, g if weight is None else g * weight) as (wide_g, h):
            difference = h - h.mean(self.dims, keepdim=True) - xhat * (h * xhat).mean(self.dims, keepdim=True)
        products = wide_g * stored(xhat, input.dtype)
        rows = tuple(range(input.dim() - self.normalized))
        gradients = [(rstd * difference).to(input.dtype)]
        if weight is not None:
            gradients.append(_summed(products, rows).to(input.dtype))
        if bias is not None:
            gradients.append(_summed(g, rows))
        return tuple(gradients)


def _summed(tensor: Tensor, dims: tuple[int, ...]) -> Tensor:
    return tensor.sum(dims) if dims else tensor


def _operator(name: str, form: _LayerNorm, cases: Cases, *forms: Operator) -> Operator:
    return Operator(
        name="layer_norm",
        form=name,
        forms=forms,
        inputs=form.inputs(),
        outputs=(TensorArg("output", form.shape),),
        autocast=FLOAT32,
        forward=form.forward,
        vjp=form.vjp,
        intermediates=form.intermediates,
        cases=cases,
        families=values.families(form),
        invariants=values.invariants(form),
        call=form.call,
        refusals=refusals(form),
        # There is no product, so all is elementwise. Forward reads and writes a matrix, backward reads two, writes one.
        elementwise=(f"2*{'*'.join(form.shape)}", f"3*{'*'.join(form.shape)}"),
        saved=(
            *(TensorArg(name, form.shape) for name in ("deviation", "centred", *(("xhat",) if form.weight else ()))),
            *(TensorArg(name, form.shape[: len(form.shape) - form.normalized]) for name in ("mean", "rstd")),
        ),
    )


_MATRIX = ("batch", "features")
OPERATOR = _operator(
    "rows",
    _LayerNorm(_MATRIX, 1, weight=True, bias=True),
    sizes.ROWS,
    _operator(
        "no-affine", _LayerNorm(("batch", "tokens", "features"), 1, weight=False, bias=False, eps=1e-12), sizes.TOKENS
    ),
    _operator("weight-only", _LayerNorm(_MATRIX, 1, weight=True, bias=False, passes_eps=False), sizes.WEIGHT_ONLY),
    _operator(
        "images", _LayerNorm(("batch", "channels", "height", "width"), 2, weight=True, bias=True, eps=0.5), sizes.IMAGES
    ),
    _operator("vector", _LayerNorm(("features",), 1, weight=False, bias=True, passes_eps=False), sizes.VECTOR),
)
