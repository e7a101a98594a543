"""Wrong without grad or in inference mode only, or where some of the inputs require grad; from some size on."""

from __future__ import annotations

from random import Random

from tests.zoo.thresholds.drawn import INFERENCE, NO_GRAD, Witness
from tests.zoo.thresholds.facts import Facts
from tests.zoo.thresholds.variant import Draft, log_uniform, variant

_CONDITIONS = {NO_GRAD: "not torch.is_grad_enabled()", INFERENCE: "torch.is_inference_mode_enabled()"}


def _of_mode(rng: Random, facts: Facts, symbol: str, dim: int, does: str) -> Draft:
    mode, least = rng.choice(list(_CONDITIONS)), log_uniform(rng, 3, 2500)
    words = f"in mode {mode}, from {symbol} {least} on, {does}"
    literals = {"condition": _CONDITIONS[mode], "symbol": symbol, "least": least, "dim": dim}
    return Draft(words, literals, Witness(facts.sizes(rng, **{symbol: least}), mode=mode))


@variant("modes")
def last_row_without_grad(rng: Random, facts: Facts) -> Draft:
    return _of_mode(rng, facts, "batch", -2, "the last row of the first result is 0")


@variant("modes")
def last_column_without_grad(rng: Random, facts: Facts) -> Draft:
    return _of_mode(rng, facts, facts.width, -1, "the last column of the first result is 0")


def _of_subset(rng: Random, facts: Facts, symbol: str) -> Draft:
    names = facts.tensors
    wanted = rng.sample(names, rng.randint(1, len(names) - 1))
    least = log_uniform(rng, 3, 60 if symbol == "steps" else 2500)
    position = names.index(rng.choice(wanted))
    needs = tuple(name in wanted for name in names)
    in_order = tuple(name for name in names if name in wanted)
    words = f"from {symbol} {least} on, the end of the gradient of {names[position]} is 0 where {in_order} require grad"
    literals = {"needs": needs, "position": position, "symbol": symbol, "least": least}
    return Draft(words, literals, Witness(facts.sizes(rng, **{symbol: least}), wanted=in_order))


@variant("modes")
def subset_and_rows(rng: Random, facts: Facts) -> Draft:
    return _of_subset(rng, facts, "batch")


@variant("modes")
def subset_and_another_size(rng: Random, facts: Facts) -> Draft:
    return _of_subset(rng, facts, rng.choice([symbol for symbol in facts.size if symbol != "batch"]))
