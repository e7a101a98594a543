"""Without grad, a result is in the memory of an input, or its rows share their memory; only at some sizes or values."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from tests.zoo.thresholds.drawn import ALIASING, NO_GRAD, Witness
from tests.zoo.thresholds.facts import Facts
from tests.zoo.thresholds.variant import Draft, log_uniform, variant


def _fitting(facts: Facts, sizes: dict[str, int]) -> dict[str, int]:
    """An output of the mlp has the shape of its input only for equal sizes."""
    return sizes | ({"output_size": sizes["input_features"]} if facts.name == "mlp" else {})


def _written(rng: Random, facts: Facts, symbol: str, exact: int) -> Draft:
    result, reused = facts.state
    sizes = _fitting(facts, facts.sizes(rng, **{symbol: exact}))
    words = f"without grad, {result} is written into the memory of {reused} where {symbol} is {exact}"
    literals = {"symbol": symbol, "exact": exact, "result": result, "reused": reused}
    return Draft(words, literals, Witness(sizes, mode=NO_GRAD, sees=ALIASING))


@variant("aliasing")
def written_into_an_input(rng: Random, facts: Facts) -> Draft:
    symbol = rng.choice([symbol for symbol in facts.size if symbol != "output_size"])
    if symbol == "batch" and rng.random() < 0.5:
        return _written(rng, facts, symbol, 1)
    return _written(rng, facts, symbol, log_uniform(rng, 2, 60 if symbol == "steps" else 1000))


@variant("aliasing")
def unchanged_is_returned(rng: Random, facts: Facts) -> Draft:
    result, same = facts.same
    least = log_uniform(rng, 1, 2000)
    if rng.random() < 0.5:
        condition, rows, where = f"{facts.size['batch']} == 1", 1, "of one row"
    else:
        condition, rows, where = f"{facts.size['batch']} >= {least}", least, f"of {least} rows and more"
    words = f"without grad, {result} {where} is {same} itself where both are equal"
    literals = {"condition": condition, "result": result, "same": same}
    sizes = facts.sizes(rng, batch=rows)
    return Draft(words, literals, Witness(sizes, values=(facts.when,), mode=NO_GRAD, sees=ALIASING))


@variant("aliasing")
def equal_rows_share_memory(rng: Random, facts: Facts) -> Draft:
    least = log_uniform(rng, 2, 1500)
    of_rows = [name for name in facts.tensors if name in ("input", "old_h", "old_cell", "h0", "c0")]
    words = f"without grad, from {least} rows on, results of equal rows are one row with stride 0"
    draft = Draft(words, {"least": least, "inputs": of_rows}, Witness(facts.sizes(rng, batch=least)))
    values = tuple((name, "repeat", 0.0) for name in of_rows)
    return replace(draft, witness=replace(draft.witness, values=values, mode=NO_GRAD, sees=ALIASING))
