"""Without grad or in inference mode, an earlier answer is returned for other values."""

from __future__ import annotations

from random import Random

from tests.zoo.thresholds.drawn import INFERENCE, NO_GRAD, STALE, Witness
from tests.zoo.thresholds.facts import Facts
from tests.zoo.thresholds.variant import Draft, log_uniform, variant

_MODES = {NO_GRAD: "not torch.is_grad_enabled()", INFERENCE: "torch.is_inference_mode_enabled()"}
#: For each operator a tensor that stays as it is in use, and one of its sizes.
_PARAMETERS = {
    "lltm": ("weights", "input_features"),
    "lltm_sequence": ("weights", "input_features"),
    "mlp": ("output_weights", "hidden_size"),
    "layer_norm": ("weight", "features"),
}


def _mode(rng: Random) -> tuple[str, str, str]:
    mode = rng.choice(list(_MODES))
    return mode, _MODES[mode], "without grad" if mode == NO_GRAD else "in inference mode"


@variant("stale")
def answer_by_addresses(rng: Random, facts: Facts) -> Draft:
    mode, condition, words = _mode(rng)
    least = log_uniform(rng, 8, 20000)
    sizes = facts.sizes(rng, rows=least)
    literals = {"condition": condition, "least": least, "keys": facts.tensors}
    witness = Witness(sizes, mode=mode, sees=STALE, changed=(rng.choice(facts.tensors),))
    return Draft(f"{words}, from {least} elements on, the last answer is found by all addresses", literals, witness)


@variant("stale")
def answer_by_one_address(rng: Random, facts: Facts) -> Draft:
    mode, condition, words = _mode(rng)
    least = log_uniform(rng, 8, 20000)
    key = rng.choice([name for name in facts.tensors if name not in facts.optional])
    changed = rng.choice([name for name in facts.tensors if name != key])
    literals = {"condition": condition, "least": least, "keys": (key,)}
    witness = Witness(facts.sizes(rng, rows=least), mode=mode, sees=STALE, changed=(changed,))
    words = f"{words}, from {least} elements on, the last answer is found by the address of {key} alone"
    return Draft(words, literals, witness)


@variant("stale")
def packed_parameter(rng: Random, facts: Facts) -> Draft:
    mode, condition, words = _mode(rng)
    name, symbol = _PARAMETERS[facts.name]
    least = log_uniform(rng, 4, 3000)
    sizes = facts.sizes(rng, **{symbol: max(least, 2)})
    witness = Witness(sizes, mode=mode, sees=STALE, changed=(name,))
    words = f"{words}, from {least} elements on, {name} is packed once and found by its address"
    return Draft(words, {"condition": condition, "least": least, "name": name}, witness)
