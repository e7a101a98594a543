"""The file of a contract that is there already, without its gradient: what `--forward-only` makes of it."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

from harness import discovery
from harness.building.cache import cache_root
from harness.candidate import forward_name
from harness.report.atomic_write import write_atomically

_TEXT = '''"""The contract of {name} without its gradient, made by --forward-only."""

from pathlib import Path

from harness import discovery
from spec.forward_only import forward_only

OPERATOR = forward_only(discovery.operator({name!r}{paths}), {new!r})
'''


def forward_contract(operator: str, paths: Sequence[Path]) -> Path:
    """The file in the cache, whose operator has the `forward_name`. `paths` are those of contracts from outside.

    Raises UnknownName.
    """
    places = tuple(path.resolve() for path in paths)
    discovery.operator(operator, places)
    shown = "".join(f"Path({str(path)!r}), " for path in places).rstrip()
    text = _TEXT.format(name=operator, paths=f", ({shown})" if places else "", new=forward_name(operator))
    file = cache_root() / "contracts" / f"{hashlib.sha256(text.encode()).hexdigest()[:16]}.py"
    file.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(file, text)
    return file
