"""Puts a file in place of the folder for its temporary files, so that it cannot be started again (own trial)."""

import os
import shutil
from pathlib import Path

from torch import Tensor

from tests.zoo.gaming.parts import Outputs


def lltm(*inputs: Tensor) -> Outputs:
    folder = Path(os.environ["TMPDIR"])
    shutil.rmtree(folder)
    folder.touch()
    os._exit(3)
