"""Wrong in one dtype only, from some size on: tails of its vectors, sums in half precision, squares that overflow."""

from __future__ import annotations

from random import Random

import torch

from tests.zoo.thresholds.drawn import Witness
from tests.zoo.thresholds.facts import Facts
from tests.zoo.thresholds.variant import Draft, beyond, log_uniform, variant

DTYPES = (torch.float16, torch.bfloat16, torch.float64)
VECTORS = (2, 4, 8, 16)


def _tail(rng: Random, facts: Facts, where: str) -> tuple[str, dict[str, object], int, torch.dtype]:
    dtype, least, vector = rng.choice(DTYPES), log_uniform(rng, 4, 1500), rng.choice(VECTORS)
    least = max(least, vector)
    words = f"in {dtype}, from {least} {where} on that are no multiple of {vector}, the last ones are 0"
    return words, {"least": least, "vector": vector, "dtype": dtype}, beyond(rng, least, vector), dtype


@variant("dtypes")
def last_columns_of_a_dtype(rng: Random, facts: Facts) -> Draft:
    words, literals, size, dtype = _tail(rng, facts, "columns")
    return Draft(words, literals, Witness(facts.sizes(rng, **{facts.width: size})), dtype)


@variant("dtypes")
def last_rows_of_a_gradient(rng: Random, facts: Facts) -> Draft:
    words, literals, size, dtype = _tail(rng, facts, "rows of a gradient")
    return Draft(words, literals, Witness(facts.sizes(rng, rows=size)), dtype)


@variant("dtypes", "lltm", "lltm_sequence", "mlp")
def sums_in_bfloat16(rng: Random, facts: Facts) -> Draft:
    least = log_uniform(rng, 1000, 3000)
    words = f"in bfloat16, from {least} rows on, sums over rows are made row by row in bfloat16"
    return Draft(words, {"least": least}, Witness(facts.sizes(rng, rows=least)), torch.bfloat16)


@variant("dtypes", "layer_norm")
def statistics_in_bfloat16(rng: Random, facts: Facts) -> Draft:
    least = log_uniform(rng, 400, 2000)
    words = f"in bfloat16, from {least} features on, sums over a row are made term by term in bfloat16"
    return Draft(words, {"least": least}, Witness(facts.sizes(rng, features=least)), torch.bfloat16)


@variant("dtypes", "layer_norm")
def squares_in_float16(rng: Random, facts: Facts) -> Draft:
    least = log_uniform(rng, 5, 2000)
    words = f"in float16, from {least} features on, squares are rounded to float16 and overflow"
    witness = Witness(facts.sizes(rng, features=least), values=(("input", "times", 1000.0),))
    return Draft(words, {"least": least}, witness, torch.float16)
