"""Wrong from some width on that is no multiple of a vector, at one exact size, or beyond some number of steps."""

from __future__ import annotations

from random import Random

from tests.zoo.thresholds.drawn import Witness
from tests.zoo.thresholds.facts import Facts
from tests.zoo.thresholds.variant import Draft, beyond, log_uniform, variant

VECTORS = (2, 3, 4, 4, 8, 8, 16, 16, 24, 32, 64)


def _tail(rng: Random) -> tuple[int, int, int]:
    """A least size, a vector's width, and a size from there on that is no multiple of it."""
    least, vector = log_uniform(rng, 5, 1500), rng.choice(VECTORS)
    return least, vector, beyond(rng, max(least, vector), vector)


@variant("other-sizes")
def last_columns(rng: Random, facts: Facts) -> Draft:
    least, vector, size = _tail(rng)
    words = f"from {least} columns on that are no multiple of {vector}, the last ones are 0"
    sizes = facts.sizes(rng, **{facts.width: size})
    return Draft(words, {"least": max(least, vector), "vector": vector}, Witness(sizes))


@variant("other-sizes")
def last_columns_of_gradient(rng: Random, facts: Facts) -> Draft:
    least, vector, size = _tail(rng)
    words = f"from {least} columns on that are no multiple of {vector}, the last gradients are 0"
    symbol = "state_size" if facts.name.startswith("lltm") else "features"
    sizes = facts.sizes(rng, **{"input_features" if facts.name == "mlp" else symbol: size})
    return Draft(words, {"least": max(least, vector), "vector": vector}, Witness(sizes))


@variant("other-sizes", "lltm", "lltm_sequence", "mlp")
def last_factors(rng: Random, facts: Facts) -> Draft:
    least, vector, size = _tail(rng)
    words = f"from {least} factors on that are no multiple of {vector}, products leave out the last ones"
    sizes = facts.sizes(rng)
    if facts.name == "mlp":
        sizes |= {rng.choice(("input_features", "hidden_size")): size}
    else:
        sizes |= {"state_size": size // 2, "input_features": size - size // 2}
    return Draft(words, {"least": max(least, vector), "vector": vector}, Witness(sizes))


@variant("other-sizes", "layer_norm")
def last_terms(rng: Random, facts: Facts) -> Draft:
    least, vector, size = _tail(rng)
    words = f"from {least} features on that are no multiple of {vector}, sums over a row leave out the last ones"
    return Draft(words, {"least": max(least, vector), "vector": vector}, Witness(facts.sizes(rng, features=size)))


@variant("other-sizes")
def one_width(rng: Random, facts: Facts) -> Draft:
    exact = log_uniform(rng, 5, 1500)
    words = f"where a result has {exact} columns, the last one is that before it"
    return Draft(words, {"exact": exact}, Witness(facts.sizes(rng, **{facts.width: exact})))


@variant("other-sizes")
def one_size(rng: Random, facts: Facts) -> Draft:
    symbols = [symbol for symbol in facts.size if symbol != facts.width]
    symbol = rng.choice(symbols)
    exact = log_uniform(rng, 2, 70 if symbol == "steps" else 1500)
    words = f"where {symbol} is {exact}, the last column of the first result is 0"
    literals = {"exact": exact, "symbol": symbol, "result": facts.outputs[0]}
    return Draft(words, literals, Witness(facts.sizes(rng, **{symbol: exact})))


@variant("other-sizes", "lltm_sequence")
def gradient_of_last_steps(rng: Random, facts: Facts) -> Draft:
    most = log_uniform(rng, 2, 60)
    words = f"the gradient goes back {most} steps only"
    return Draft(words, {"most": most}, Witness(facts.sizes(rng, steps=most + rng.randint(2, 5))))


@variant("other-sizes", "lltm_sequence")
def steps_of_a_ring(rng: Random, facts: Facts) -> Draft:
    most = log_uniform(rng, 2, 60)
    words = f"after {most} steps the state of the step before is lost"
    return Draft(words, {"most": most}, Witness(facts.sizes(rng, steps=most + rng.randint(2, 5))))
