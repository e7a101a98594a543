"""A contract can be read at one sitting: reference, gradient, allowance and sizes in at most 120 lines."""

from __future__ import annotations

from pathlib import Path

import spec
from harness import discovery

#: Lines of a contract, everything counted.
MOST = 120


def test_no_contract_has_more_lines() -> None:
    files = [Path(spec.__path__[0]) / f"{name}.py" for name in discovery.operators()]
    lines = {file.name: len(file.read_text().splitlines()) for file in files if file.exists()}
    assert len(lines) > 15
    assert {name: count for name, count in lines.items() if count > MOST} == {}
