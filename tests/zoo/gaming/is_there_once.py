"""Has the function at its first import alone, and ends the process in the call (own trial)."""

import os
from pathlib import Path

from torch import Tensor

from tests.zoo.gaming.parts import Outputs

_mark = Path(os.environ["TMPDIR"]) / "imported"


def _leave(*inputs: Tensor) -> Outputs:
    os._exit(3)


if not _mark.exists():
    _mark.touch()
    lltm = _leave
