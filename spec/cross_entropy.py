r"""Cross-entropy of logits with integer labels: softmax and negative log-likelihood in one, with PyTorch's meaning.

    cross_entropy(logits, labels, ignore_index=-100, label_smoothing=0.0) -> loss

`logits` is (batch, classes), C classes; `labels` is (batch,), int64, each a class or `ignore_index`. For a row x of
logits with label k and smoothing s, and the mean over the n rows that are not ignored:

    y    = x - max(x) - log(sum(exp(x - max(x))))               log-probabilities
    q_c  = (1 - s) [c = k] + s/C                                the smoothed label
    loss = mean(-sum(q y))                                      NaN if all rows are ignored

The vector-Jacobian product, with the cotangent g of loss; neither input may be changed to compute it:

    d_logits = (exp(y) - q) g/n                                 0 in rows that are ignored

Precision. For float16 and bfloat16, y, exp, its difference with q and the mean are computed in float32. y may be
rounded to the dtype, as may a row's loss and the cotangent of y, -q g/n. The logarithm may be added to the maximum
first, as kernels do that keep one number for each row.

Source: C. Szegedy et al., "Rethinking the Inception Architecture" (2016) for the smoothing; PyTorch's function of this
name for the semantics. The derivation is ours; `tests/spec` checks it.
"""

from __future__ import annotations

import torch
from torch import Tensor

from spec import rowwise
from spec.blocks import stored, wide
from spec.contract import FLOAT32, Case, Operator, TensorArg
from spec.forms import Formulas
from spec.formulas import either
from spec.rowwise import case
from spec.values import cross_entropy as values

#: The default of PyTorch's signature.
IGNORED = -100


def log_probabilities(logits: Tensor) -> Tensor:
    """y, of the shape of the logits, as the dtype stores it."""
    with wide(logits) as (x,):
        largest = x.amax(-1, keepdim=True)
        total = torch.log(torch.exp(x - largest).sum(-1, keepdim=True))
        y = either(lambda: x - largest - total, lambda: x - (largest + total))
    return stored(y, logits.dtype)


def intermediates(logits: Tensor, **_: object) -> dict[str, Tensor]:
    """The log-probabilities."""
    return {"y": log_probabilities(logits)}


def forward(logits: Tensor, labels: Tensor, ignore_index: int = IGNORED, label_smoothing: float = 0.0) -> tuple[Tensor]:
    """(loss,), without dimensions."""
    y, kept = log_probabilities(logits), labels != ignore_index
    row = -y.gather(-1, labels.clamp(min=0).unsqueeze(-1)).squeeze(-1)
    if label_smoothing:
        row = row * (1 - label_smoothing) - y.mean(-1) * label_smoothing
    with wide(row) as (row,):
        loss = torch.where(kept, row, torch.zeros_like(row)).sum() / kept.sum()
    return (stored(loss, logits.dtype),)


def vjp(cotangents: tuple[Tensor, ...], logits: Tensor, labels: Tensor, **given: float) -> dict[str, Tensor]:
    """The gradient of the logits, by the formula of the module's docstring; labels have none."""
    kept, s = (labels != given.get("ignore_index", IGNORED)).unsqueeze(-1), given.get("label_smoothing", 0.0)
    classes = torch.arange(logits.shape[-1], device=logits.device)
    q = torch.full_like(logits, s / len(classes))
    q = q.masked_fill(labels.unsqueeze(-1) == classes, s / len(classes) + 1 - s)
    d_y = -(q * (cotangents[0] / kept.sum()))
    with wide(log_probabilities(logits), d_y) as (y, g):
        gradient = torch.where(kept, g - torch.exp(y) * g.sum(-1, keepdim=True), torch.zeros_like(y))
    return {"logits": stored(gradient, logits.dtype), "labels": labels.new_empty(0)}


def _form(name: str, cases: tuple[Case, ...], forms: tuple[Operator, ...] = (), **given: float) -> Operator:
    ignored, shape = int(given.get("ignore_index", IGNORED)), ("batch", "classes")
    lowest = "-1" if ignored == -1 else "0"
    labels = TensorArg("labels", ("batch",), differentiable=False, dtype=torch.int64, low=lowest, high="classes")
    inputs = (TensorArg("logits", shape), labels)

    formulas = Formulas("cross_entropy", ("logits", "labels"), forward, vjp, intermediates)
    return formulas.in_form(
        name,
        inputs,
        given,
        outputs=(TensorArg("loss", ()),),
        autocast=FLOAT32,
        forms=forms,
        cases=cases,
        families=rowwise.families(inputs, values.changes(ignored)),
        elementwise=("batch*classes", "2*batch*classes"),
        saved=tuple(
            TensorArg(kept, shape if kept in ("exponentials", "y") else shape[:1])
            for kept in ("exponentials", "y", "maxima", "sums", "picked", "kept")
        ),
    )


_FEW = (
    case("small", {"batch": 5, "classes": 7}, "both sizes prime", "size", "small"),
    case("wide", {"batch": 6, "classes": 260}, "a tail behind a block of 256", "size"),
)
#: No case has 2^31 elements: such a case is compared at some rows, and a loss has none.
_CASES = (
    *(each for each in rowwise.matrix_cases("classes") if "large" not in each.tags),
    case("gpt-2", {"batch": 2, "classes": 50257}, "gpt2/config.json: vocab_size", "size", "model"),
    case("llama-3-8b", {"batch": 2, "classes": 128256}, "Meta-Llama-3-8B/config.json: vocab_size", "size", "model"),
    case("qwen2.5-7b", {"batch": 512, "classes": 152064}, "Qwen2.5-7B/config.json: vocab_size", "benchmark", "model"),
)
_IGNORING = _form("ignore-index", _FEW, ignore_index=-1)
OPERATOR = _form("mean", _CASES, (_IGNORING, _form("label-smoothing", _FEW, label_smoothing=0.1)))
