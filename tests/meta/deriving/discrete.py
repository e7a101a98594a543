"""References that return integers or truth values, other functions that are right, and wrong ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

#: Rows and columns of the examples.
SHAPE = (6, 8)
_K, _LARGEST, _LARGEST_OF_4, _LEAST, _LEAST_IN_HALF = 2, 127, 7, 1e-12, 1e-6


def _wide(x: Tensor) -> Tensor:
    return x.to(torch.promote_types(x.dtype, torch.float32))


def top_k(logits: Tensor) -> tuple[Tensor, Tensor]:
    """The router of a mixture of experts: the weights of the two largest, and their indices."""
    values, indices = torch.topk(torch.softmax(_wide(logits), -1), _K)
    return (values / values.sum(-1, keepdim=True)).to(logits.dtype), indices


def top_k_by_sorting(logits: Tensor) -> tuple[Tensor, Tensor]:
    values, indices = torch.sort(_wide(logits), dim=-1, descending=True)
    return torch.softmax(values[..., :_K], -1).to(logits.dtype), indices[..., :_K].contiguous()


def quantise(x: Tensor) -> tuple[Tensor, Tensor]:
    """Numbers of 8 bits, and a float32 scale for each row."""
    scale = _scale(x)
    return torch.round(_wide(x) / scale).clamp(-128, _LARGEST).to(torch.int8), scale


def _scale(x: Tensor) -> Tensor:
    return _wide(x).abs().amax(-1, keepdim=True).clamp_min(_LEAST) / _LARGEST


def quantise_by_inverse(x: Tensor) -> tuple[Tensor, Tensor]:
    """Halves are rounded up, not to even."""
    scale = _scale(x)
    return torch.floor(_wide(x) * (1 / scale) + 0.5).nan_to_num().to(torch.int8), scale


def quantise_in_its_dtype(x: Tensor) -> tuple[Tensor, Tensor]:
    """In half types rounding changes numbers by up to 8: of few it decides nothing."""
    scale = x.abs().amax(-1, keepdim=True).clamp_min(_LEAST_IN_HALF) / _LARGEST
    return torch.round(x / scale).clamp(-_LARGEST, _LARGEST).to(torch.int8), scale


def quantise_in_float32(x: Tensor) -> tuple[Tensor, Tensor]:
    wide = _wide(x)
    scale = wide.abs().amax(-1, keepdim=True).clamp_min(_LEAST_IN_HALF) / _LARGEST
    return torch.round(wide / scale).clamp(-_LARGEST, _LARGEST).to(torch.int8), scale.to(x.dtype)


def pack(x: Tensor) -> tuple[Tensor, Tensor]:
    """Two numbers of 4 bits in one of 8, added up as real numbers."""
    wide = _wide(x)
    scale = wide.abs().amax(-1, keepdim=True).clamp_min(_LEAST) / _LARGEST_OF_4
    numbers = torch.round(wide / scale).clamp(-8, 7) + 8
    return (numbers[..., ::2] + 16 * numbers[..., 1::2]).to(torch.uint8), scale


def pack_in_integers(x: Tensor) -> tuple[Tensor, Tensor]:
    wide = _wide(x)
    scale = wide.abs().amax(-1, keepdim=True).clamp_min(_LEAST) * (1 / _LARGEST_OF_4)
    numbers = torch.round(wide * (1 / scale)).nan_to_num().to(torch.int32).clamp(-8, 7) + 8
    return (numbers[..., ::2] | (numbers[..., 1::2] << 4)).to(torch.uint8), scale


def pack_asymmetric(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Four numbers of 4 bits in one of 32, with a zero point for each row."""
    wide = _wide(x)
    least, most = wide.amin(-1, keepdim=True), wide.amax(-1, keepdim=True)
    scale = ((most - least) / 15).clamp_min(_LEAST)
    zero = torch.round(-least / scale)
    numbers = torch.clamp(torch.floor(wide / scale + 0.5) + zero, 0, 15)
    powers = 16.0 ** torch.arange(4)
    return (numbers.unflatten(-1, (-1, 4)) * powers).sum(-1).to(torch.int32), scale, zero.to(torch.int16)


def pack_asymmetric_in_integers(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    wide = _wide(x)
    least, most = torch.aminmax(wide, dim=-1, keepdim=True)
    scale = ((most - least) * (1 / 15)).clamp_min(_LEAST)
    zero = torch.round(-least * (1 / scale)).nan_to_num()
    numbers = (torch.floor(wide / scale + 0.5).nan_to_num() + zero).clamp(0, 15).to(torch.int32).unflatten(-1, (-1, 4))
    packed = torch.zeros_like(numbers[..., 0])
    for place in range(4):
        packed |= numbers[..., place] << 4 * place
    return packed, scale, zero.to(torch.int16)


def rounded_down(x: Tensor) -> tuple[Tensor, Tensor]:
    """Codes by a division that rounds."""
    scale = _scale(x)
    codes = torch.div(_wide(x), scale, rounding_mode="floor") + 128
    return codes.clamp(0, 255).to(torch.uint8), scale


def rounded_down_by_floor(x: Tensor) -> tuple[Tensor, Tensor]:
    scale = _scale(x)
    return (torch.floor(_wide(x) / scale).nan_to_num().to(torch.int32) + 128).clamp(0, 255).to(torch.uint8), scale


def largest(x: Tensor) -> Tensor:
    return x.argmax(-1)


def last_largest(x: Tensor) -> Tensor:
    """Of equal elements the last."""
    return x.shape[-1] - 1 - x.flip(-1).argmax(-1)


def positive(x: Tensor) -> tuple[Tensor, Tensor]:
    """Relu, and where it lets through."""
    return F.relu(x), x > 0


def positive_by_sign(x: Tensor) -> tuple[Tensor, Tensor]:
    return F.threshold(x, 0.0, 0.0), x.sign() == 1


def attend(x: Tensor) -> tuple[Tensor, Tensor]:
    """A softmax, and the logarithm of its denominator in float32, as attention returns it."""
    wide = _wide(x)
    return torch.softmax(wide, -1).to(x.dtype), torch.logsumexp(wide, -1)


def attend_by_parts(x: Tensor) -> tuple[Tensor, Tensor]:
    wide = _wide(x)
    most = wide.amax(-1, keepdim=True)
    powers = (wide - most).exp()
    total = powers.sum(-1, keepdim=True)
    logarithm = torch.where(most.isfinite(), most + total.log(), most)
    return (powers / total).to(x.dtype), logarithm.squeeze(-1)


#: Each reference with a function that computes the same in another way.
RIGHT: dict[Callable[..., Any], Callable[..., Any]] = {
    top_k: top_k_by_sorting,
    quantise: quantise_by_inverse,
    quantise_in_its_dtype: quantise_in_float32,
    pack: pack_in_integers,
    pack_asymmetric: pack_asymmetric_in_integers,
    rounded_down: rounded_down_by_floor,
    largest: last_largest,
    positive: positive_by_sign,
    attend: attend_by_parts,
}


def off_by_one(logits: Tensor) -> tuple[Tensor, Tensor]:
    values, indices = top_k(logits)
    return values, indices + 1


def second_beyond_128_rows(logits: Tensor) -> tuple[Tensor, Tensor]:
    values, indices = top_k(logits)
    return values, torch.cat([indices[:128], indices[128:].flip(-1)])


def narrow_indices(logits: Tensor) -> tuple[Tensor, Tensor]:
    values, indices = top_k(logits)
    return values, indices.int()


def of_the_smallest(logits: Tensor) -> tuple[Tensor, Tensor]:
    return top_k(logits)[0], top_k(-logits)[1]


def towards_zero(x: Tensor) -> tuple[Tensor, Tensor]:
    scale = _scale(x)
    return torch.trunc(_wide(x) / scale).nan_to_num().to(torch.int8), scale


def six_percent_less(x: Tensor) -> tuple[Tensor, Tensor]:
    numbers, scale = quantise_in_float32(x)
    return torch.round(numbers.float() / 1.06).to(torch.int8), scale


def cut_at_118(x: Tensor) -> tuple[Tensor, Tensor]:
    numbers, scale = quantise_in_float32(x)
    return numbers.clamp(-118, 118), scale


def zeros_for_inference(x: Tensor) -> tuple[Tensor, Tensor]:
    numbers, scale = quantise_in_float32(x)
    return numbers if torch.is_grad_enabled() else torch.zeros_like(numbers), scale


def scale_of_the_wrong_row(x: Tensor) -> tuple[Tensor, Tensor]:
    numbers, scale = quantise(x)
    return numbers, scale.roll(1, 0)


def narrow_scale(x: Tensor) -> tuple[Tensor, Tensor]:
    numbers, scale = quantise(x)
    return numbers, scale.to(x.dtype)


def packs_the_other_way(x: Tensor) -> tuple[Tensor, Tensor]:
    numbers, scale = pack(x)
    return (numbers >> 4) | (numbers << 4), scale


def cut_at_6(x: Tensor) -> tuple[Tensor, Tensor]:
    numbers, scale = pack(x)
    return (numbers & 15).clamp(max=14) | ((numbers >> 4).clamp(max=14) << 4), scale


def zero_point_of_one_more(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    packed, scale, zero = pack_asymmetric(x)
    return packed, scale, zero + 1


def rounded_to_zero(x: Tensor) -> tuple[Tensor, Tensor]:
    scale = _scale(x)
    return (torch.trunc(_wide(x) / scale).nan_to_num().to(torch.int32) + 128).clamp(0, 255).to(torch.uint8), scale


def smallest(x: Tensor) -> Tensor:
    return x.argmin(-1)


def keeps_the_dimension(x: Tensor) -> Tensor:
    return x.argmax(-1, keepdim=True)


def always_first(x: Tensor) -> Tensor:
    return torch.zeros_like(x[..., 0], dtype=torch.int64)


def not_negative(x: Tensor) -> tuple[Tensor, Tensor]:
    return F.relu(x), x >= 0


def negated(x: Tensor) -> tuple[Tensor, Tensor]:
    return F.relu(x), x <= 0


def real_mask(x: Tensor) -> tuple[Tensor, Tensor]:
    return F.relu(x), (x > 0).to(x.dtype)


def denominator_in_half(x: Tensor) -> tuple[Tensor, Tensor]:
    """Computed in float32, and rounded on its way."""
    probabilities, logarithm = attend(x)
    return probabilities, logarithm.to(x.dtype).to(logarithm.dtype)


#: For each reference: a wrong function, and what its failure says.
WRONG: tuple[tuple[Callable[..., Any], Callable[..., Any], str], ...] = (
    (top_k, off_by_one, r"output_1 was \d+ at \(0, 0\), but should be \d+ \[.*\n.* every element is 1 too large"),
    (top_k, second_beyond_128_rows, r"output_1 was \d+ at \(128, 0\), but should be \d+ \["),
    (top_k, narrow_indices, r"dtype of output_1 was torch.int32, but should be torch.int64"),
    (top_k, of_the_smallest, r"output_1 was \d+ at \(0, 0\), but should be"),
    (quantise, towards_zero, r"output_0 was -?\d+ at \(\d, \d\), but should be -?\d+ \["),
    (pack, packs_the_other_way, r"output_0 was \d+ at \(0, 0\), but should be \d+ \["),
    (pack, cut_at_6, r"output_0 was \d+ at \(\d, \d\), but should be \d+ \["),
    (pack_asymmetric, zero_point_of_one_more, r"output_2 was .*\n.* every element is 1 too large"),
    (rounded_down, rounded_to_zero, r"output_0 was \d+ at \(\d, \d\), but should be \d+ \["),
    (quantise, scale_of_the_wrong_row, r"output_1 was 0\.\d+ at "),
    (largest, smallest, r"output was \d at \(0,\), but should be \d \["),
    (largest, keeps_the_dimension, r"shape of output was \(3, 1\), but should be \(3,\) = \(batch,\)"),
    (largest, always_first, r"output was 0 at \(\d,\), but should be \d \[.*\n.* it is zero everywhere"),
    (positive, not_negative, r"output_1 was True at \(0, 0\), but should be False \[positive\(edges: .* sparse-values"),
    (positive, negated, r"output_1 was .*\n.* it is True where it should be False, and False where it should be True"),
    (positive, real_mask, r"dtype of output_1 was torch.float\d+, but should be torch.bool"),
)
