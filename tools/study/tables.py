"""Read the record of `tools.study.method`, and draw the tables of docs/method.md from it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from harness.rendering import tables
from tools.study.candidates import CONTROLS, FAULTS, GRADED, GRADES

#: Sizes of the calls that are counted.
SMALL, LARGE, POOLED = "small", "larger", "pooled"
SINGLE = (SMALL, LARGE)
OURS = "ours"
#: A grade counts as found if this share of its pools is rejected.
FOUND = 0.95

Record = dict[str, Any]


def interval(k: int, n: int) -> tuple[float, float]:
    """Wilson's 95% interval for k of n."""
    if n == 0:
        return 0.0, 1.0
    z, p = 1.959964, k / n
    centre, half = p + z * z / (2 * n), z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    low, high = ((centre + sign * half) / (1 + z * z / n) for sign in (-1, 1))
    return (0.0 if k == 0 else low), (1.0 if k == n else high)


def percent(k: int, n: int) -> str:
    """`12% (9-16)`: the rate and its interval."""
    if n == 0:
        return "-"
    low, high = interval(k, n)
    return f"{_digits(k / n)}% ({_digits(low)}-{_digits(high)})"


def _digits(rate: float) -> str:
    value = 100 * rate
    if value in (0, 100) or 9.95 <= value < 99:
        return f"{value:.0f}"
    return f"{min(value, 99.9):.1f}"  # 100 means all


def dtypes_of(record: Record) -> list[str]:
    """The dtypes of the record, in its order."""
    return list(dict.fromkeys(dtype for part in record["operators"].values() for dtype in part["counts"]))


def tally(
    record: Record,
    group: str,
    judge: str,
    sizes: Iterable[str],
    *,
    operators: Iterable[str] = (),
    dtypes: Iterable[str] = (),
    only: str = "",
) -> list[int]:
    """[rejected, calls] over the members of a group whose names begin with `only`; of all operators and dtypes if none
    are named."""
    index, total = list(record["judges"]).index(judge), [0, 0]
    for operator in operators or record["operators"]:
        counts = record["operators"][operator]["counts"]
        for dtype in dtypes or counts:
            for member, by_size in counts[dtype].get(group, {}).items():
                for size in sizes:
                    if member.startswith(only) and size in by_size:
                        total[0] += by_size[size]["rejected"][index]
                        total[1] += by_size[size]["calls"]
    return total


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def drawn(record: Record) -> dict[str, str]:
    """The tables of docs/method.md by the names of their markers."""
    found = {
        "study": _study(record),
        "judges": _table(["judge", "rule"], [[name, rule] for name, rule in record["judges"].items()]),
        "longest sums": _longest_sums(record),
        "graded, pooled": _grades(record),
        "graded, ours": _grades_of_ours(record),
        "used": _used(record),
        "missed": _missed(record),
        "shares": _shares(record),
        "edges": _edges(record),
    }
    for group, title in ((CONTROLS, "false alarms"), (FAULTS, "detections")):
        for sizes, kind in ((SINGLE, "calls"), ((POOLED,), "pooled")):
            found[f"{title}, {kind}"] = _by_dtype(record, group, sizes, f"{title} in {kind.replace('pooled', 'pools')}")
        found[f"{title}, operators"] = _by_operator(record, group, title)
    return found


def _study(record: Record) -> str:
    rows = []
    for operator, part in record["operators"].items():
        named = [part[key] for key in ("controls", "faults")]
        counts = [part["seeds"], *map(len, named), part["pooled_scenarios"], round(part["cpu_seconds"])]
        rows.append([operator, *map(str, counts)])
    machine = next(iter(record["operators"].values()))["environment"]
    return _table(["operator", "seeds", "right implementations", "faults", "calls of a pool", "core seconds"], rows) + (
        f"\n{len(record['judges'])} judges. Faults run for one seed in {record['faults_every']}, errors of a few "
        f"percent for one in {record['graded_every']}. torch {machine['torch']}, {machine['cpu']}.\n"
    )


def _longest_sums(record: Record) -> str:
    rows = []
    for operator, part in record["operators"].items():
        sums = part["longest_sums"]
        sizes = ", ".join(f"{symbol} {size}" for symbol, size in sums["sizes"].items())
        rows.append([operator, sizes, ", ".join(f"{name} {k}" for name, k in sums["k"].items())])
    return _table(["operator", "sizes", "k of each result"], rows)


def _by_dtype(record: Record, group: str, sizes: tuple[str, ...], title: str) -> str:
    """A row for each judge, a column for each dtype, all operators together; the last row has the number of calls."""
    dtypes = dtypes_of(record)
    rows = [
        [judge, *(percent(*tally(record, group, judge, sizes, dtypes=(dtype,))) for dtype in dtypes)]
        for judge in record["judges"]
    ]
    counts = [str(tally(record, group, OURS, sizes, dtypes=(dtype,))[1]) for dtype in dtypes]
    return _table([title, *dtypes], [*rows, ["number", *counts]])


def _by_operator(record: Record, group: str, title: str) -> str:
    """A row for each judge, a column for each operator: the rates of pools in the dtypes."""
    dtypes = dtypes_of(record)

    def rate(judge: str, operator: str, dtype: str) -> str:
        k, n = tally(record, group, judge, (POOLED,), operators=(operator,), dtypes=(dtype,))
        return _digits(k / n) if n else "-"

    operators = list(record["operators"])
    rows = [
        [j, *(" / ".join(rate(j, operator, dtype) for dtype in dtypes) for operator in operators)]
        for j in record["judges"]
    ]
    return _table([f"{title} in pools, %: {' / '.join(dtypes)}", *operators], rows)


def _grades(record: Record) -> str:
    """The smallest error of each operator that a judge finds, in each dtype."""
    dtypes = dtypes_of(record)

    def least(judge: str, operator: str, dtype: str) -> str:
        where = {"operators": (operator,), "dtypes": (dtype,)}
        for s in GRADES:
            k, n = tally(record, GRADED, judge, (POOLED,), only=f"{s:g} ", **where)
            if n and k >= FOUND * n:
                return f"{100 * s:g}"
        return "-"

    operators = list(record["operators"])
    rows = [
        [j, *(" / ".join(least(j, operator, dtype) for dtype in dtypes) for operator in operators)]
        for j in record["judges"]
    ]
    return _table([f"least error found, %: {' / '.join(dtypes)}", *operators], rows)


def _grades_of_ours(record: Record) -> str:
    rows = []
    for operator, part in record["operators"].items():
        for dtype in part["counts"]:
            where = {"operators": (operator,), "dtypes": (dtype,)}
            cells = (percent(*tally(record, GRADED, OURS, (POOLED,), only=f"{s:g} ", **where)) for s in GRADES)
            rows.append([operator, dtype, *cells])
    return _table(["operator", "dtype", *(f"{100 * s:g}%" for s in GRADES)], rows)


def _used(record: Record) -> str:
    """The largest used share of each allowance; of the gains of named blocks, the largest."""
    names, rows = ("largest", "rms", "elementwise", "gain"), []
    for operator, part in record["operators"].items():
        for dtype, used in part["used_by_controls"].items():
            blocks = [value for name, value in used.items() if name.startswith("gain of ")]
            cells = [*(used[name] for name in names), max(blocks, default=None)]
            rows.append([operator, dtype, *("-" if value is None else f"{value:.2f}" for value in cells)])
    return _table(["operator", "dtype", *names, "gain of a block"], rows)


def _missed(record: Record) -> str:
    """The faults of tests/zoo that our judge did not always catch over a pool."""
    index, rows = list(record["judges"]).index(OURS), []
    for operator, part in record["operators"].items():
        for dtype, groups in part["counts"].items():
            for fault, by_size in groups.get(FAULTS, {}).items():
                slot = by_size.get(POOLED, {"rejected": [0] * (index + 1), "calls": 0})
                k, n = slot["rejected"][index], slot["calls"]
                if k < n or n == 0:
                    rows.append([operator, fault, dtype, f"{k} of {n}"])
    return _table(["operator", "fault", "dtype", "pools that caught it"], rows) if rows else "None.\n"


def _shares(record: Record) -> str:
    rows, blocks = [], dict[str, None]()
    for part in record["operators"].values():
        blocks |= dict.fromkeys(block for shares in part["block_shares"].values() for block in shares)
    for operator, part in record["operators"].items():
        for name, of in part["block_shares"].items():
            cells = (f"{_digits(of[block])}%" if block in of else "-" for block in blocks)
            rows.append([f"{operator}: gradient of {name}", *cells])
    return _table(["", *blocks], rows)


def _edges(record: Record) -> str:
    """False alarms of each judge at the value families of each operator, and how many of the faults there it caught."""
    parts = {operator: part["at_edges"] for operator, part in record["operators"].items()}
    rows = []
    for index, judge in enumerate(record["judges"]):
        caught = [seen[index] for part in parts.values() for seen in part["caught"].values()]
        alarms = (percent(part["alarms"][index], part["calls"]) for part in parts.values())
        rows.append([judge, *alarms, f"{sum(caught)} of {len(caught)}"])
    counts = [str(part["calls"]) for part in parts.values()]
    return _table(["false alarms", *parts, "faults caught"], [*rows, ["number", *counts, ""]])


def insert(record: Record, document: str) -> str:
    """`document` with every table redrawn."""
    for name, text in drawn(record).items():
        document = tables.insert(text, document, name)
    return document
