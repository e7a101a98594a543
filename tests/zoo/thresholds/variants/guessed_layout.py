"""A layout is guessed from sizes: where two are in some ratio, a matrix is read as its transpose, or reshaped."""

from __future__ import annotations

from fractions import Fraction
from random import Random

from tests.zoo.thresholds.drawn import Witness
from tests.zoo.thresholds.facts import Facts
from tests.zoo.thresholds.variant import Draft, log_uniform, variant

RATIOS = (Fraction(1), Fraction(2), Fraction(3), Fraction(1, 2), Fraction(4))


def _in_ratio(rng: Random, facts: Facts, one: str, other: str) -> tuple[Draft, int]:
    """Sizes with `one` = ratio * `other`, from a least size on, and the condition in the source."""
    ratio, least = rng.choice(RATIOS), log_uniform(rng, 3, 60)
    size = least * ratio.denominator
    sizes = facts.sizes(rng, **{other: size, one: int(size * ratio)})
    left = facts.size[one] if ratio.denominator == 1 else f"{ratio.denominator} * {facts.size[one]}"
    right = facts.size[other] if ratio.numerator == 1 else f"{ratio.numerator} * {facts.size[other]}"
    condition = f"{left} == {right} and {facts.size[other]} >= {size}"
    words = f"where {one} is {ratio} {other} and {other} is {size} or more"
    return Draft(words, {"condition": condition}, Witness(sizes)), size


@variant("guessed-layout")
def matrix_read_as_its_transpose(rng: Random, facts: Facts) -> Draft:
    name = rng.choice(list(facts.shapes))
    draft, _ = _in_ratio(rng, facts, *facts.shapes[name])
    words = f"{name} is read as its transpose {draft.words}"
    return Draft(words, {**draft.literals, "name": name}, draft.witness)


@variant("guessed-layout")
def sizes_of_another_matrix(rng: Random, facts: Facts) -> Draft:
    """The ratio is between two sizes of which one may belong to another tensor."""
    name = rng.choice(list(facts.shapes))
    one, other = rng.sample(list(facts.size), 2)
    draft, _ = _in_ratio(rng, facts, one, other)
    words = f"{name} is read as its transpose {draft.words}"
    return Draft(words, {**draft.literals, "name": name}, draft.witness)


@variant("guessed-layout", "lltm", "lltm_sequence")
def interleaved_gates(rng: Random, facts: Facts) -> Draft:
    ratio, least = rng.choice(RATIOS), log_uniform(rng, 3, 60)
    size = least * ratio.denominator
    sizes = facts.sizes(rng, state_size=size, input_features=int(size * ratio))
    words = f"gates are taken for interleaved where input_features is {ratio} state_size, from {size} on"
    literals = {"numerator": ratio.numerator, "denominator": ratio.denominator, "least": size}
    return Draft(words, literals, Witness(sizes))


@variant("guessed-layout", "mlp")
def gradient_of_the_transpose(rng: Random, facts: Facts) -> Draft:
    ratio, least = rng.choice(RATIOS), log_uniform(rng, 3, 60)
    size = least * ratio.denominator
    sizes = facts.sizes(rng, input_features=size, hidden_size=int(size * ratio))
    words = f"a gradient of weights is that of the transpose where they have {ratio} times as many rows as columns"
    literals = {"numerator": ratio.numerator, "denominator": ratio.denominator, "least": size}
    return Draft(f"{words}, from {size} columns on", literals, Witness(sizes))
