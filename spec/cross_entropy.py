r"""Cross entropy of logits and labels, the mean over the rows that are not ignored.

    cross_entropy(logits, labels, ignore_index=-100, label_smoothing=0.0) -> loss, of shape ()

`logits` is (batch, classes); `labels`, (batch,) and int64, has a class or ignore_index for each row. With e =
label_smoothing, C classes and M the number of rows that are not ignored, for such a row x of label y:

    log_p = x - max(x) - log(sum(exp(x - max(x))))
    row   = -(1 - e) log_p_y - e sum(log_p) / C
    loss  = (sum of row over the rows that are not ignored) / M

The vector-Jacobian product. Let g be the cotangent of loss; d log_p_i/dx_j = [i = j] - p_j, so for such a row

    d_logits = (g / M) (p - (1 - e) [j = y] - e / C),     p = exp(log_p)

and 0 for a row that is ignored. Where M = 0 the loss is NaN, and d_logits is left open.

Precision. For float16 and bfloat16, all of this is computed in float32. log_p may be rounded to the dtype, as
`torch.nn.functional.cross_entropy` does, and so may row; p may be the exponential of that log_p. loss and d_logits are
rounded once. log(sum(...)) + max(x) may be formed before it is subtracted. The logits must not be changed.

Source: `torch.nn.functional.cross_entropy`; C. Szegedy et al. (2016) for the smoothing. The derivation is ours.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from torch import Tensor

from spec.contract import FLOAT32, Case, Draw, Invariant, Operator, Sizes, TensorArg
from spec.forms import Formulas
from spec.formulas import either
from spec.rounding import stored, wide
from spec.rowwise import Drawn, case, families, few_cases, matrix_cases, on, ordinary
from spec.softmax import equal, values

_IGNORED = -100


def log_probabilities(logits: Tensor) -> Tensor:
    """log_p of each row, rounded to the dtype."""
    with wide(logits) as (x,):
        largest = x.amax(-1, keepdim=True)
        logarithm = (x - largest).exp().sum(-1, keepdim=True).log()
        log_p = either(lambda: x - largest - logarithm, lambda: x - (largest + logarithm))
    return stored(log_p, logits.dtype)


def _counted(labels: Tensor, ignore_index: int) -> tuple[Tensor, Tensor]:
    """Which rows count, and a class for each row, also for one that is ignored."""
    counts = labels != ignore_index
    return counts, torch.where(counts, labels, 0)


def intermediates(logits: Tensor, labels: Tensor, ignore_index: int = _IGNORED, label_smoothing: float = 0.0) -> Drawn:
    """log_p, then row: 0 for a row that is ignored."""
    log_p, (counts, known) = log_probabilities(logits), _counted(labels, ignore_index)
    with wide(log_p) as (wide_p,):
        row = -(1 - label_smoothing) * wide_p.gather(-1, known.unsqueeze(-1)).squeeze(-1)
        if label_smoothing:
            row = row - label_smoothing * wide_p.mean(-1)
        return {"log_p": log_p, "row": torch.where(counts, row, 0.0)}


def forward(
    logits: Tensor, labels: Tensor, ignore_index: int = _IGNORED, label_smoothing: float = 0.0
) -> tuple[Tensor]:
    """(loss,), without a dimension."""
    row = intermediates(logits, labels, ignore_index, label_smoothing)["row"]
    with wide(stored(row, logits.dtype)) as (rows,):
        loss = rows.sum() / (labels != ignore_index).sum()
    return (stored(loss, logits.dtype),)


def vjp(
    cotangents: tuple[Tensor, ...],
    logits: Tensor,
    labels: Tensor,
    ignore_index: int = _IGNORED,
    label_smoothing: float = 0.0,
) -> Mapping[str, Tensor]:
    """The gradient by name; the labels have none."""
    counts, known = _counted(labels, ignore_index)
    with wide(log_probabilities(logits), cotangents[0]) as (log_p, g):
        is_label = known.unsqueeze(-1) == torch.arange(logits.shape[-1], device=logits.device)
        target = is_label.to(log_p.dtype) * (1 - label_smoothing) + label_smoothing / logits.shape[-1]
        difference = (log_p.exp() - target) * (g / counts.sum())
        d_logits = torch.where(counts.unsqueeze(-1), difference, 0.0)
    return {"logits": stored(d_logits, logits.dtype), "labels": logits.new_empty(labels.shape)}


def _right(drawn: Drawn, _draw: Draw, _dtype: torch.dtype) -> None:
    drawn["logits"].scatter_add_(1, drawn["labels"].unsqueeze(1), torch.full_like(drawn["logits"][:, :1], 25.0))


def _form(name: str, cases: tuple[Case, ...], forms: tuple[Operator, ...] = (), **attributes: float) -> Operator:
    inputs = (
        TensorArg("logits", ("batch", "classes")),
        TensorArg("labels", ("batch",), differentiable=False, dtype=torch.int64, high="classes"),
    )
    ignored = attributes.get("ignore_index", _IGNORED)

    def some_ignored(drawn: Drawn, _draw: Draw, _dtype: torch.dtype) -> None:
        drawn["labels"][1::2] = int(ignored)

    def unspecified(tensors: tuple[Tensor, ...], cotangents: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        """NaN where no row counts, and in ignored rows that are not finite: 0 times such a row may be NaN."""
        found, counts = vjp(cotangents, *tensors, **attributes), tensors[1] != ignored  # type: ignore[arg-type]
        is_open = (~counts & ~tensors[0].isfinite().all(-1)) | (~counts).all()
        return found["logits"].masked_fill(is_open.unsqueeze(-1), math.nan), found["labels"]

    def uniform(sizes: Sizes, draw: Draw, dtype: torch.dtype) -> Drawn:
        drawn = ordinary(inputs, sizes, draw)
        on("logits", equal)(drawn, draw, dtype)
        return drawn

    def of_uniform(logits: Tensor, labels: Tensor) -> dict[str, Tensor]:
        count = (labels != ignored).sum()
        return {"loss": count / count * math.log(logits.shape[1])}

    return Formulas("cross_entropy", ("logits", "labels"), forward, vjp, intermediates).in_form(
        name,
        inputs,
        attributes,
        outputs=(TensorArg("loss", ()),),
        forms=forms,
        autocast=FLOAT32,
        unspecified=unspecified,
        cases=cases,
        families=families(
            inputs,
            {
                "some-ignored": ("every other label is ignore_index", some_ignored),
                "right": ("each label holds nearly all, so that the gradient cancels", _right),
                **values("logits"),
            },
        ),
        invariants=(Invariant("uniform", "equal logits have the loss log(classes)", uniform, of_uniform),),
        elementwise=("batch*classes", "2*batch*classes"),
        saved=(
            *(TensorArg(each, ("batch", "classes")) for each in ("shifted", "exponentials")),
            *(TensorArg(each, ("batch",)) for each in ("largest", "total", "known", "counts")),
        ),
    )


_MODELS = (
    case("llama-3-8b", {"batch": 2, "classes": 128256}, "Meta-Llama-3-8B/config.json: vocab_size", "size", "model"),
    case("qwen2.5-7b", {"batch": 2, "classes": 152064}, "Qwen2.5-7B/config.json: vocab_size", "size", "model"),
    case("large", {"batch": 2048, "classes": 128256}, "a quarter of a prompt of Llama 3 8B", "benchmark", "model"),
)

OPERATOR = _form(
    "plain",
    (*matrix_cases("classes"), *_MODELS),
    forms=(
        _form("class-ignored", few_cases("classes"), ignore_index=1),
        _form("smoothing", few_cases("classes"), label_smoothing=0.1),
    ),
)
