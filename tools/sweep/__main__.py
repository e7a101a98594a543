"""Measure a sweep, or draw records of sweeps into docs/performance.md."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from harness.bench import record
from harness.running import environment
from tools.sweep import __doc__ as meaning
from tools.sweep.drawing import DOCUMENT, draw
from tools.sweep.grid import GRIDS, Point
from tools.sweep.measuring import Row, compile_ahead, measure

KIND = "sweep"


def _point(text: str) -> Point:
    rows, _, columns = text.partition("x")
    if not (rows.isdecimal() and columns.isdecimal() and int(rows) > 0 and int(columns) > 0):
        raise argparse.ArgumentTypeError(f"point was {text!r}, but should be two sizes, as 64x1024")
    return int(rows), int(columns)


def main() -> None:
    """As the arguments say."""
    parser = argparse.ArgumentParser(description=meaning, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("operator", nargs="?", choices=sorted(GRIDS))
    parser.add_argument("--backend", default="cuda-fused")
    parser.add_argument("--device", default="cuda", choices=("cpu", "cuda"))
    parser.add_argument("--dtype", action="append", help="default: float32 and bfloat16")
    parser.add_argument(
        "--point", type=_point, action="append", metavar="ROWSxCOLUMNS", help="in this order; default: the whole grid"
    )
    parser.add_argument("--processes", type=int, default=12, help="that compile at the same time")
    parser.add_argument("-o", "--output", type=Path, default=Path("reports/sweep.json"))
    parser.add_argument("--draw", type=Path, nargs="+", metavar="RECORD")
    given = parser.parse_args()
    if given.draw:
        document = DOCUMENT.read_text(encoding="utf-8")
        for path in given.draw:
            document = draw(record.read(path, KIND, "--draw"), path, document)
        DOCUMENT.write_text(document, encoding="utf-8")
        return
    if given.operator is None:
        parser.error(f"operator was not given, but should be one of {', '.join(sorted(GRIDS))}")
    dtypes = given.dtype or ["float32", "bfloat16"]
    about: dict[str, Any] = {
        "kind": KIND,
        "schema": record.SCHEMA,
        "operator": given.operator,
        "backend": given.backend,
    }
    about["environment"] = environment.describe()
    given.output.parent.mkdir(parents=True, exist_ok=True)

    def keep(rows: list[Row], missing: list[Row]) -> None:
        record.write({**about, "rows": rows, "missing": missing}, given.output)

    points = given.point or ()
    compile_ahead(given.operator, given.device, dtypes, given.processes, points)
    measure(GRIDS[given.operator], given.backend, given.device, dtypes, print, keep, points)


if __name__ == "__main__":
    main()
