"""What Liger-Kernel's functions do otherwise than their contracts: docs/findings.md shows the defects with scripts."""

from __future__ import annotations

from backends.base import Declaration

_OVER_INPUTS = (
    "defect: backward writes the gradients over gate and up, which their owner may still use; upstream calls it "
    "intended (Liger-Kernel#254, #272)"
)
_OVER_LOGITS = (
    "defect: forward writes the gradient over the logits, which their owner may still use (Liger-Kernel#343, #272)"
)
_OVER_HEADS = "defect: forward turns the queries in place, and backward the cotangent (Liger-Kernel#272)"

DECLARED = (
    Declaration("autograd-hooks", _OVER_LOGITS, operator="cross_entropy"),
    Declaration("autograd-hooks", _OVER_HEADS, operator="rotary"),
    Declaration(
        "layouts",
        "defect: the gradient of logits that are not contiguous is the logits themselves, since a copy inside an "
        "autograd.Function does not require grad",
        operator="cross_entropy",
    ),
    Declaration("no-side-effects", _OVER_LOGITS, operator="cross_entropy"),
    Declaration("no-side-effects", _OVER_INPUTS, operator="geglu"),
    Declaration("no-side-effects", _OVER_HEADS, operator="rotary"),
    Declaration("no-side-effects", _OVER_INPUTS, operator="swiglu"),
    Declaration(
        "sizes",
        "defect: an empty batch raises, since cross_entropy_forward asks for the largest of no labels",
        operator="cross_entropy",
    ),
    Declaration(
        "sizes",
        "defect: no indices raise, since LigerEmbeddingFunction views them with a size of -1; it is experimental",
        operator="embedding",
    ),
    Declaration(
        "sizes",
        "defect: a row of more than 65536 elements raises, and the kernel for such rows is never chosen "
        "(Liger-Kernel#1252)",
        operator="softmax",
    ),
)
