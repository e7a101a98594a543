"""What is known of an attack: how it is judged, and what comes of it."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

FOLDER = Path(__file__).parent

#: Outcomes. `caught`: the cell fails, for the reason that is stated. `harmless`: what is returned alone decides the
#: verdict, so a wrong function is judged wrong and a right one right. `known limit`: a wrong function is judged right.
CAUGHT, HARMLESS, LIMIT = OUTCOMES = ("caught", "harmless", "known limit")

#: Where an attack is judged: in a runner with others that change nothing outside themselves; in a runner of its own;
#: by `Isolation`, with its limits and its second process; in a copy of the checkout; there, with a process that is
#: started again; from the command line; on a GPU.
TOGETHER, ALONE, ISOLATED, IN_A_COPY, RESTARTED, COMMAND_LINE, GPU = range(7)

#: How it is shown, outside the suite, that the function is wrong: it returns another value, or does not return, or
#: never returns. `READ` is for what one call cannot show: it stands in the file. `RIGHT` functions are not wrong.
VALUE, ENDS, HANGS, READ, RIGHT = range(5)


@dataclass(frozen=True)
class Attack:
    """A candidate that tries to be judged right without being right; `name` is that of its file.

    `property` is judged, `says` is a pattern that the reason of a caught one must match. `why` explains, in a sentence,
    an attack that is harmless or a known limit. `sizes` (batch, input_features, state_size) and the number of `calls`
    are those with which a plain call shows that it is wrong. A cell may take `seconds`. In a copy of the checkout
    without bubblewrap, `leaves` are the files of the suite that it changes.
    """

    name: str
    property: str
    outcome: str
    says: str = ""
    why: str = ""
    way: int = TOGETHER
    shown: int = VALUE
    sizes: tuple[int, int, int] = (3, 4, 5)
    calls: int = 2
    examples: int = 20
    seconds: float = 60.0
    dtype: str = "float32"
    leaves: tuple[str, ...] = ()

    @property
    def file(self) -> Path:
        """The candidate."""
        return FOLDER / f"{self.name}.py"

    @cached_property
    def _docstring(self) -> str:
        return ast.get_docstring(ast.parse(self.file.read_text())) or ""

    @property
    def mistake(self) -> str:
        """What it does: the docstring of its file, without the source."""
        return self._docstring.rpartition(" (")[0]

    @property
    def source(self) -> str:
        """Where it is known from: the last words of the docstring, in brackets."""
        return self._docstring.rpartition(" (")[2].removesuffix(").")

    @property
    def by(self) -> str:
        """What decides: a property for a caught one, a sentence for the others."""
        if self.outcome != CAUGHT:
            return self.why
        if self.way == GPU:
            return f"{self.property}; on a GPU, last run on an H200 at 46c8ea0"
        return f"{self.property}, {self.why}" if self.why else self.property
