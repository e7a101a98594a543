"""The errors of a run, in the order in which a run can meet them.

A run reads its options (`UsageError`, `UnknownName`). It finds operators and backends (`Broken` if one does not
import). It builds and loads compiled code (`Unavailable` if this machine lacks the means, `CannotBuild` if it fails
meanwhile, `Broken` if the compiler or the loader fails). It judges (`Failure` if an implementation breaks the
contract). The first two end the run with one sentence; the others become a cell of the report, and the run goes on.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Any


class HarnessError(Exception):
    """Base class of all errors that this package raises on purpose."""


class UsageError(HarnessError):
    """An option that cannot be read. The message names the option, what it was and what it should be."""


#: What others call it.
_ALIASES = {
    "gpu": "cuda",
    "half": "float16",
    "fp16": "float16",
    "bf16": "bfloat16",
    "float": "float32",
    "fp32": "float32",
    "double": "float64",
    "fp64": "float64",
}


#: Names that a message lists.
_SHOWN = 100


class UnknownName(UsageError):
    """A name that is not known; the message suggests a similar one, or what others call so."""

    def __init__(self, kind: str, name: str, known: Iterable[str]) -> None:
        known = sorted(known)
        near = [_ALIASES.get(name.lower(), "")]
        if near[0] not in known:
            near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        more = f" and {len(known) - _SHOWN:,} more" if len(known) > _SHOWN else ""
        super().__init__(f"unknown {kind} {name!r}{hint} Known: {', '.join(known[:_SHOWN]) or 'none'}{more}.")


class Unavailable(HarnessError):
    """The code may be fine, but this machine cannot run it: no CUDA device, no compiler. Verdict `not-run`."""


class CannotBuild(Unavailable):
    """The code may be fine, but the machine failed while it was built: a full disk, a compiler that was killed.

    Verdict `no-evidence`, because the next try may succeed.
    """


class Absent(Unavailable):
    """The backend declares, with a reason, that it does not implement this operator. Verdict `declared`."""


class Broken(HarnessError):
    """The code cannot be loaded: it does not import, compile or link. Verdict `fail`, with the complete log."""


class Failure(HarnessError):
    """An implementation broke the contract. The message of a comparison is «X, but should be Y [operator(case)]».

    `figures` are facts for the report: `worst` if an error exceeded its allowance, `raised` if forward or backward
    raised an error, `reproducer` if a script shows the failure on its own. `tensor` names the output or gradient that
    was wrong. `level` is the level at which the implementation failed, if that is not the level of the property.
    """

    def __init__(
        self, message: str, *, figures: Mapping[str, Any] | None = None, tensor: str = "", level: str = ""
    ) -> None:
        super().__init__(message)
        self.figures = dict(figures or {})
        self.tensor = tensor
        self.level = level

    def prefixed(self, words: str) -> Failure:
        """The same failure in the circumstances that `words` name. It has no reproducer, which would not show them."""
        figures = {name: value for name, value in self.figures.items() if name != "reproducer"}
        return type(self)(f"{words}{self}", figures=figures, tensor=self.tensor, level=self.level)

    def adding(self, sentence: str = "", **figures: Any) -> Failure:
        """The same failure with one more line of explanation and more figures."""
        message = f"{self}\n  - {sentence}" if sentence else str(self)
        return type(self)(message, figures={**self.figures, **figures}, tensor=self.tensor, level=self.level)


class Ended(Failure):
    """The process of a candidate ended, or had to be ended. To repeat the call needs a new process."""


class NoEvidence(HarnessError):
    """The check ran, but a wrong answer would have passed it too. Verdict `no-evidence`."""


class NotTaken(NoEvidence):
    """The reference of a derived contract raises an error for this call, or would return a tensor of negative length.

    Nobody knows what should come out.
    """


class NotApplicable(HarnessError):
    """The property does not apply to this operator, or this machine cannot tell. Verdict `not-run`, with the reason."""
