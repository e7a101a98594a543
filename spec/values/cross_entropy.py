"""Values of cross-entropy: logits at the limits of exp, sure labels, classes that a mask leaves out."""

from __future__ import annotations

import torch

from spec.contract import Draw
from spec.rowwise import Change, Drawn, scaled


def _far(drawn: Drawn, _draw: Draw, _dtype: torch.dtype) -> None:
    drawn["logits"] += 64.0


def _below(drawn: Drawn, _draw: Draw, _dtype: torch.dtype) -> None:
    drawn["logits"] -= 256.0


def _masked(drawn: Drawn, _draw: Draw, _dtype: torch.dtype) -> None:
    logits, index = drawn["logits"], drawn["labels"].clamp(min=0).unsqueeze(-1)
    of_labels = logits.gather(-1, index)
    logits[:, ::2] = -10000.0
    logits.scatter_(-1, index, of_labels)


def _certain(drawn: Drawn, _draw: Draw, _dtype: torch.dtype) -> None:
    index = drawn["labels"].clamp(min=0).unsqueeze(-1)
    drawn["logits"].scatter_(-1, index, drawn["logits"].amax(-1, keepdim=True) + 6.0)


def changes(ignored: int) -> dict[str, tuple[str, Change]]:
    """The value families, by name; `ignored` is the label of a row that does not count."""

    def ignore(drawn: Drawn, _draw: Draw, _dtype: torch.dtype) -> None:
        drawn["labels"][1:] = ignored

    return {
        "far-from-0": ("logits around 64, whose exponentials overflow float16", _far),
        "far-below-0": ("logits around -256, whose exponentials are all 0", _below),
        "large-values": ("one class has nearly all of the probability", scaled("logits", 64.0)),
        "certain": ("labels that are nearly sure: a loss and a gradient near 0", _certain),
        "equal-logits": ("all classes are equally probable", scaled("logits", 0.0)),
        "masked-classes": ("every other class at -10000, as masks are added, but not the label", _masked),
        "one-row-counts": ("all rows but the first are ignored", ignore),
    }
