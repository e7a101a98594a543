"""Wrong only where two things come together: two layouts, a layout and a cotangent, values and a layout, and so on."""

from __future__ import annotations

from random import Random

from tests.zoo.thresholds.drawn import Expanded, Witness
from tests.zoo.thresholds.facts import Facts
from tests.zoo.thresholds.variant import Draft, log_uniform, variant

#: How an author tells a layout from another, of a tensor of any number of dimensions.
CONDITIONS = {
    "offset": "{name}.storage_offset() % 4 == 1 and {name}.is_contiguous()",
    "strided": "{name}.stride(-1) == 2",
    "expanded": "{name}.stride(0) == 0",
    "padded": "{name}.dim() > 1 and {name}.stride(-2) > {name}.shape[-1] > 1 and {name}.stride(-1) == 1",
    "transposed": "{name}.dim() > 1 and {name}.stride(-2) == 1 and {name}.stride(-1) == {name}.shape[-2]",
}


def _condition(name: str, layout: str, facts: Facts) -> str:
    there = f"{name} is not None and " if name in facts.optional else ""
    return there + CONDITIONS[layout].format(name=name)


def _matrix(rng: Random, facts: Facts) -> str:
    return rng.choice(list(facts.shapes))


def _in_layout(rng: Random, facts: Facts, other_than: str) -> tuple[str, str]:
    """Another tensor and a layout that it can have."""
    name = rng.choice([name for name in facts.tensors if name != other_than])
    vectors = ("offset", "strided", "expanded")
    return name, rng.choice(tuple(CONDITIONS) if name in facts.shapes else vectors)


def _sizes(rng: Random, facts: Facts, **fixed: int) -> dict[str, int]:
    """Sizes of at least 3, all different, so that a transpose shows."""
    symbols = list(facts.size)
    return dict(zip(symbols, rng.sample(range(3, 12), len(symbols)), strict=True)) | fixed


@variant("pairs")
def two_layouts(rng: Random, facts: Facts) -> Draft:
    name = _matrix(rng, facts)
    other, layout = _in_layout(rng, facts, name)
    words = f"{name}, transposed in memory, is read as if it were not where {other} is {layout}"
    condition = f"{_condition(name, 'transposed', facts)} and {_condition(other, layout, facts)}"
    witness = Witness(_sizes(rng, facts), layouts={name: "transposed", other: layout})
    return Draft(words, {"name": name, "condition": condition}, witness)


@variant("pairs")
def layout_and_values(rng: Random, facts: Facts) -> Draft:
    name = _matrix(rng, facts)
    limit = round(rng.uniform(3.0, 30.0), 1)
    above = rng.random() < 0.5
    test = f"{name}.numel() and bool(({name} > 0).all())" if above else f"bool(({name}.abs() > {limit}).any())"
    values = ((name, "magnitude", 1.0),) if above else ((name, "times", 20 * limit),)
    kind = "positive" if above else f"beyond {limit} somewhere"
    words = f"{name}, transposed in memory, is read as if it were not where it is {kind}"
    condition = f"{_condition(name, 'transposed', facts)} and {test}"
    witness = Witness(_sizes(rng, facts), layouts={name: "transposed"}, values=values)
    return Draft(words, {"name": name, "condition": condition}, witness)


def _with_cotangent(rng: Random, facts: Facts, condition: str) -> tuple[dict[str, str], dict[str, Expanded], str]:
    """A condition on one cotangent too: it is the same for all rows, or in all columns. Its words come last."""
    position = rng.randrange(len(facts.outputs))
    output = facts.outputs[position]
    cotangent = ("g_h", "g_c")[position] if len(facts.outputs) > 1 else "g"
    dim, words = rng.choice(((-2, "the same for all rows"), (-1, "the same in all columns")))
    both = f"{cotangent}.numel() and {condition} and {cotangent}.stride({dim}) == 0"
    kinds = {output: Expanded((dim % facts.rank(output),))}
    return {"condition": both, "cotangent": cotangent}, kinds, f"the cotangent of {output} is {words}"


@variant("pairs")
def layout_and_cotangent(rng: Random, facts: Facts) -> Draft:
    name, layout = _in_layout(rng, facts, facts.tensors[-1] if facts.name in ("mlp", "layer_norm") else "")
    literals, kinds, words = _with_cotangent(rng, facts, _condition(name, layout, facts))
    words = f"a cotangent is taken for a scalar where {name} is {layout} and {words}"
    return Draft(words, literals, Witness(_sizes(rng, facts), layouts={name: layout}, cotangents=kinds))


@variant("pairs")
def subset_and_cotangent(rng: Random, facts: Facts) -> Draft:
    names = facts.tensors
    wanted = rng.sample(names, rng.randint(1, len(names) - 1))
    needs = tuple(name in wanted for name in names)
    in_order = tuple(name for name in names if name in wanted)
    condition = f"tuple(ctx.needs_input_grad[:{len(needs)}]) == {needs}"
    literals, kinds, words = _with_cotangent(rng, facts, condition)
    least = log_uniform(rng, 2, 40)
    literals |= {"condition": f"{literals['condition']} and {facts.size['batch']} >= {least}"}
    words = f"a cotangent is taken for a scalar where {in_order} require grad, batch is {least} or more and {words}"
    sizes = _sizes(rng, facts, batch=least + 1)
    return Draft(words, literals, Witness(sizes, cotangents=kinds, wanted=in_order))
