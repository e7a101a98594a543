"""Wrong beyond some magnitude, or at a corner: equal rows, rows of one value, positive zero."""

from __future__ import annotations

from random import Random

from tests.zoo.thresholds.drawn import Witness
from tests.zoo.thresholds.facts import Facts
from tests.zoo.thresholds.variant import Draft, log_uniform, variant

CELLS = ("lltm", "lltm_sequence")


def _cell(facts: Facts) -> str:
    return facts.state[1]


@variant("values", *CELLS)
def sigmoid_cut_off(rng: Random, facts: Facts) -> Draft:
    limit = round(rng.uniform(3.0, 9.0), 2)
    values = (("bias", "magnitude", 0.1), ("bias", "plus", -limit - 1.5))
    words = f"sigmoid is 0 below {-limit}"
    return Draft(words, {"limit": limit}, Witness(facts.sizes(rng), values=values))


@variant("values", *CELLS)
def tanh_limited(rng: Random, facts: Facts) -> Draft:
    limit = round(rng.uniform(1.2, 2.3), 2)
    values = ((_cell(facts), "magnitude", 0.1), (_cell(facts), "plus", limit))
    return Draft(f"tanh is 1 beyond {limit}", {"limit": limit}, Witness(facts.sizes(rng), values=values))


@variant("values", *CELLS)
def exp_cut_off(rng: Random, facts: Facts) -> Draft:
    limit = round(rng.uniform(2.0, 4.0), 2)
    values = (("bias", "magnitude", 0.1), ("bias", "plus", -limit))
    words = f"elu is -1 below {-limit}, with slope 0"
    return Draft(words, {"limit": limit}, Witness(facts.sizes(rng), values=values))


@variant("values", *CELLS)
def slope_of_negative(rng: Random, facts: Facts) -> Draft:
    least = log_uniform(rng, 30, 3000)
    values = (("bias", "magnitude", 0.1), ("bias", "plus", -6.0))
    words = f"the slope of elu is elu itself where {least} candidates and more are all negative"
    sizes = facts.sizes(rng, batch=-(-least // 3))
    return Draft(words, {"least": least}, Witness(sizes, values=values))


@variant("values", "lltm", "lltm_sequence", "mlp")
def equal_rows(rng: Random, facts: Facts) -> Draft:
    least = log_uniform(rng, 4, 600)
    rows = [name for name in facts.tensors if name in ("input", "old_h", "old_cell", "h0", "c0")]
    sizes = facts.sizes(rng, batch=least) | ({"steps": 1} if "steps" in facts.size else {})
    words = f"from {least} rows on, the gradient of weights of equal rows is that of the first, times their number"
    return Draft(words, {"least": least}, Witness(sizes, values=tuple((name, "repeat", 0.0) for name in rows)))


@variant("values", "mlp")
def relu_limited(rng: Random, facts: Facts) -> Draft:
    limit = round(rng.uniform(4.0, 400.0), 2)
    values = (("input", "times", 4 * limit),)
    return Draft(f"relu is at most {limit}", {"limit": limit}, Witness(facts.sizes(rng), values=values))


@variant("values", "mlp")
def zero_is_active(rng: Random, facts: Facts) -> Draft:
    least = log_uniform(rng, 2, 1000)
    values = (("hidden_weights", "fill", 0.0), ("hidden_bias", "fill", 0.0))
    words = f"from {least} rows on, relu has slope 1 at +0 (and 0 at -0)"
    return Draft(words, {"least": least}, Witness(facts.sizes(rng, rows=least), values=values))


@variant("values", "layer_norm")
def outliers_limited(rng: Random, facts: Facts) -> Draft:
    limit = round(rng.uniform(8.0, 200.0), 1)
    values = (("input", "times", 4 * limit),)
    return Draft(f"inputs are limited to {limit}", {"limit": limit}, Witness(facts.sizes(rng), values=values))


@variant("values", "layer_norm")
def one_pass_of_large_means(rng: Random, facts: Facts) -> Draft:
    limit = float(log_uniform(rng, 1500, 20000))
    values = (("input", "plus", 4 * limit),)
    words = f"the variance is E[x^2] - mean^2 where all means are beyond {limit}"
    return Draft(words, {"limit": limit}, Witness(facts.sizes(rng, features=rng.randint(4, 300)), values=values))


@variant("values", "layer_norm")
def rows_of_one_value(rng: Random, facts: Facts) -> Draft:
    least = log_uniform(rng, 2, 2000)
    values = (("input", "fill", round(rng.uniform(-4, 4) * 16) / 16),)
    words = f"from {least} features on, a row of one value has no gradient"
    return Draft(words, {"least": least}, Witness(facts.sizes(rng, features=least), values=values))
